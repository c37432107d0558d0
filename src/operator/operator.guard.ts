import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { OAuthError } from '../oauth/oauth-error.js';
import { headerValues } from '../platform/request-context/request-context.js';
import { FailedAuthentications } from './failed-authentications.js';
import { bearerTokenOf, OperatorCredentials } from './operator-credentials.js';

@Injectable()
export class OperatorGuard implements CanActivate {
  constructor(
    private readonly credentials: OperatorCredentials,
    private readonly failures: FailedAuthentications,
  ) {}

  /** @throws OAuthError `not_found` if no admin token is configured, otherwise `invalid_token` */
  canActivate(context: ExecutionContext): boolean {
    if (!this.credentials.areConfigured) throw OAuthError.notFound();
    const headers = headerValues(context.switchToHttp().getRequest(), 'authorization');
    const [authorization] = headers;
    if (headers.length === 1 && this.credentials.match(authorization)) return true;
    if (headers.length > 1) this.failures.record('more than one Authorization header');
    else if (authorization === undefined) this.failures.record('no Authorization header');
    else if (bearerTokenOf(authorization) === undefined) this.failures.record('no bearer token');
    throw OAuthError.invalidToken('not the operator');
  }
}
