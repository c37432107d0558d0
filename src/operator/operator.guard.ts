import { type CanActivate, Injectable } from '@nestjs/common';
import { OAuthError } from '../oauth/oauth-error.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { FailedAuthentications } from './failed-authentications.js';
import { bearerTokenOf, OperatorCredentials } from './operator-credentials.js';

@Injectable()
export class OperatorGuard implements CanActivate {
  constructor(
    private readonly credentials: OperatorCredentials,
    private readonly failures: FailedAuthentications,
  ) {}

  /** @throws OAuthError `not_found` if no admin token is configured, otherwise `invalid_token` */
  canActivate(): boolean {
    if (!this.credentials.areConfigured) throw OAuthError.notFound();
    const headers = requestContext.required().headerValues('authorization');
    const [authorization] = headers;
    if (headers.length === 1 && this.credentials.match(authorization)) return true;
    if (headers.length > 1) this.failures.record('more than one Authorization header');
    else if (authorization === undefined) this.failures.record('no Authorization header');
    else if (bearerTokenOf(authorization) === undefined) this.failures.record('no bearer token');
    throw OAuthError.invalidToken('not the operator');
  }
}
