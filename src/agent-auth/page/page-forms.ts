import { IsString } from 'class-validator';
import type { Request } from 'express';
import { readBody } from '../../oauth/body-reader.js';
import { parseForm } from '../../oauth/form.js';
import { Optional, readParameters } from '../../oauth/parameters.js';

/**
 * The field that all forms of the pages have. Every field is optional, because each route decides what a missing field
 * means.
 */
export class PageForm {
  /** The CSRF token, which binds the form to the browser that loaded it. */
  @Optional()
  @IsString()
  csrf?: string;
}

/** A form about an authorization request. */
class RequestForm extends PageForm {
  /** The query of the authorization request. */
  @Optional()
  @IsString()
  request?: string;
}

export class SignInForm extends RequestForm {
  @Optional()
  @IsString()
  email?: string;

  @Optional()
  @IsString()
  password?: string;
}

export class ConsentForm extends RequestForm {
  /** The scopes that the page showed. */
  @Optional()
  @IsString()
  scope?: string;

  @Optional()
  @IsString()
  decision?: string;
}

/**
 * The forms of the authorization page are read as forms only (application/x-www-form-urlencoded), never as JSON
 * (protocol §2.4).
 *
 * @throws OAuthError `invalid_request`
 */
export async function readPageForm<Form extends PageForm>(form: new () => Form, request: Request): Promise<Form> {
  return readParameters(form, parseForm(await readBody(request)));
}
