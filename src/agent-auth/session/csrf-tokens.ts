import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { OAuthError } from '../../oauth/oauth-error.js';
import { readParameters } from '../../oauth/parameters.js';
import { readBody } from '../../oauth/request-body.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { randomSecret } from '../../platform/secret.js';
import type { PageForm } from '../page/page-forms.js';
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

/** Tokens against cross-site request forgery. A form must contain the token that was issued to the same browser. */
@Injectable()
export class CsrfTokens {
  constructor(
    private readonly cookies: SignedCookies,
    private readonly configuration: Configuration,
  ) {}

  /** Issues a token for a form, bound to a cookie of the browser. */
  issue(request: Request): string {
    const nonce = this.cookies.read(request, COOKIE_NAME) ?? randomSecret('base64url');
    this.cookies.write(request, COOKIE_NAME, nonce, LIFETIME_SECONDS);
    return this.cookies.sign(PURPOSE, nonce);
  }

  /**
   * Reads a form of a page, which is never JSON (protocol §2.4).
   *
   * @throws OAuthError `invalid_request` if its token was not issued to this browser, or another origin sent the form
   */
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
