import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { OAuthError } from '../../oauth/oauth-error.js';
import type { AdminRole } from '../../platform/configuration/admin-tokens.js';
import { authorizationOf } from './authorization.js';
import { FailedAuthentications } from './failed-authentications.js';
import { OperatorCredentials } from './operator-credentials.js';
import { recordCaller } from './principal.js';

/** The role that a route needs, or all routes of a controller (protocol §9.1). A route without it needs `all`. */
export const RequiredRole = Reflector.createDecorator<AdminRole>();

@Injectable()
export class OperatorGuard implements CanActivate {
  constructor(
    private readonly credentials: OperatorCredentials,
    private readonly failures: FailedAuthentications,
    private readonly reflector: Reflector,
  ) {}

  /** @throws OAuthError `not_found` if no admin token is configured, `invalid_token`, or `insufficient_scope`; 503 */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (!this.credentials.areConfigured) throw OAuthError.notFound();
    const authorization = authorizationOf(context.switchToHttp().getRequest());
    const declared = this.reflector.getAllAndOverride(RequiredRole, [context.getHandler(), context.getClass()]);
    const operator = await this.credentials.match(authorization, declared ?? 'all');
    if (operator) {
      recordCaller({ operator: operator.actor });
      return true;
    }
    if (!authorization) {
      this.failures.record('no Authorization header');
      throw OAuthError.missingToken();
    }
    if (authorization.isRepeated) this.failures.record('more than one Authorization header');
    else if (authorization.bearer === undefined) this.failures.record('no bearer token');
    throw OAuthError.invalidToken('not the operator');
  }
}
