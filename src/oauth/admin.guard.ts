import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Audit } from '../audit/audit.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { equalInConstantTime, sha256 } from '../platform/secret.js';
import { OAuthError } from './oauth-error.js';

/** Knows the operator by ADMIN_TOKEN, of which there may be several while one replaces another. */
@Injectable()
export class AdminGuard implements CanActivate {
  private readonly hashes: string[];

  constructor(
    { ADMIN_TOKEN }: Configuration,
    private readonly audit: Audit,
  ) {
    this.hashes = ADMIN_TOKEN?.split(',').map(sha256) ?? [];
  }

  /** @throws OAuthError `not_found` where no operator is configured, else `invalid_token` */
  canActivate(context: ExecutionContext): boolean {
    if (this.hashes.length === 0) throw OAuthError.notFound();
    const { headers, ip = '' } = context.switchToHttp().getRequest<Request>();
    if (this.isOperator(headers.authorization)) return true;
    this.audit.record({
      event: 'admin.authentication_failed',
      outcome: 'failure',
      actor: { kind: 'operator' },
      reason: headers.authorization === undefined ? 'no Authorization header' : 'not an ADMIN_TOKEN',
      details: { address: ip },
    });
    throw OAuthError.invalidToken('not the operator');
  }

  /** Whether an `Authorization` header is the operator's. */
  isOperator(authorization: string | undefined): boolean {
    const [, token] = /^Bearer (\S+)$/i.exec(authorization ?? '') ?? [];
    if (token === undefined) return false;
    const hash = sha256(token);
    return this.hashes.some((each) => equalInConstantTime(each, hash));
  }
}
