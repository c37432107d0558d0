import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { OAuthError } from '../oauth/oauth-error.js';
import { authorizationOf } from '../platform/http/authorization.js';
import { FailedAuthentications } from './failed-authentications.js';
import { OperatorCredentials } from './operator-credentials.js';

@Injectable()
export class OperatorGuard implements CanActivate {
  constructor(
    private readonly credentials: OperatorCredentials,
    private readonly failures: FailedAuthentications,
  ) {}

  /** @throws OAuthError `not_found` if no admin token is configured, otherwise `invalid_token` */
  canActivate(context: ExecutionContext): boolean {
    if (!this.credentials.areConfigured) throw OAuthError.notFound();
    const authorization = authorizationOf(context.switchToHttp().getRequest());
    if (this.credentials.match(authorization)) return true;
    if (!authorization) {
      this.failures.record('no Authorization header');
      throw OAuthError.missingToken();
    }
    if (authorization.isRepeated) this.failures.record('more than one Authorization header');
    else if (authorization.bearer === undefined) this.failures.record('no bearer token');
    throw OAuthError.invalidToken('not the operator');
  }
}
