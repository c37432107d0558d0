import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { OAuthError } from '../../oauth/oauth-error.js';
import { OptionalText, readParameters } from '../../oauth/parameters.js';
import { readBody } from '../../oauth/request-body.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { randomSecret } from '../../platform/secret.js';
import { SignedCookies } from './signed-cookies.js';

const COOKIE_NAME = 'form';
const PURPOSE = 'form token';
const LIFETIME_SECONDS = 8 * 3600;

const FORM_ERRORS = {
  foreignOrigin: () => OAuthError.invalidRequest('Origin: must be the origin of this service'),
  invalidToken: () => OAuthError.invalidRequest('csrf: invalid; open the page again and submit its form'),
};

/** The errors that every form can have, for the OpenAPI document. */
export const formErrors = () => Object.values(FORM_ERRORS).map((error) => error());

/** Every field of a form is optional, because each route decides what a missing field means. */
export class PageForm {
  @OptionalText(
    'The hidden field of the form, which binds it to the browser that loaded the page.',
    'EXAMPLE-CSRF-TOKEN',
  )
  csrf?: string;
}

/** Tokens against cross-site request forgery. A form must contain the token that was issued to the same browser. */
@Injectable()
export class CsrfTokens {
  constructor(
    private readonly cookies: SignedCookies,
    private readonly configuration: Configuration,
  ) {}

  issue(request: Request): string {
    const nonce = this.cookies.read(request, COOKIE_NAME) ?? randomSecret('base64url');
    this.cookies.write(request, COOKIE_NAME, nonce, LIFETIME_SECONDS);
    return this.cookies.sign(PURPOSE, nonce);
  }

  /** Never JSON (protocol §2.4). @throws OAuthError if the token is of another browser, or the origin is foreign */
  async readForm<Form extends PageForm>(form: new () => Form, request: Request): Promise<Form> {
    const read = readParameters(form, await readBody(request, { form: 'only' }));
    const { origin } = request.headers;
    if (origin !== undefined && origin !== this.configuration.AUTH_URL) throw FORM_ERRORS.foreignOrigin();
    const nonce = this.cookies.read(request, COOKIE_NAME);
    if (nonce === undefined || !this.cookies.isSignature(PURPOSE, nonce, read.csrf ?? ''))
      throw FORM_ERRORS.invalidToken();
    return read;
  }
}
