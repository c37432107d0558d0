import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { OperatorCredentials } from './operator-credentials.js';

/** Admits the operator and audits every other caller. */
@Injectable()
export class OperatorGuard implements CanActivate {
  constructor(
    private readonly credentials: OperatorCredentials,
    private readonly audit: Audit,
  ) {}

  /** @throws OAuthError `not_found` if no ADMIN_TOKEN is configured, otherwise `invalid_token` */
  canActivate(context: ExecutionContext): boolean {
    if (!this.credentials.areConfigured) throw OAuthError.notFound();
    const { headers } = context.switchToHttp().getRequest<Request>();
    if (this.credentials.match(headers.authorization)) return true;
    this.audit.record({
      event: 'admin.authentication_failed',
      outcome: 'failure',
      actor: { kind: 'operator' },
      reason: headers.authorization === undefined ? 'no Authorization header' : 'not an ADMIN_TOKEN',
      details: { ip: requestContext.required().ip },
    });
    throw OAuthError.invalidToken('not the operator');
  }
}
