import { IsString } from 'class-validator';
import { Optional } from '../../oauth/parameters.js';

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
