import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { keysOfIp } from '../platform/rate-limit/limit-key.js';
import { RateLimits } from '../platform/rate-limit/rate-limits.js';
import type { CountedRequest } from '../platform/rate-limit/returned-counts.js';
import { requestContext } from '../platform/request-context/request-context.js';

/** The creator of a customer in the audit event. */
export type CustomerCreator = 'browser' | 'agent' | 'organization';

/** The limit and the audit event of each new customer. */
@Injectable()
export class CustomerCreation {
  constructor(
    private readonly limits: RateLimits,
    private readonly audit: Audit,
  ) {}

  /**
   * Takes from the limit of new customers and browsers per network, before each INSERT (protocol §2.14).
   *
   * @throws OAuthError `temporarily_unavailable`
   */
  takeLimit(): void {
    const request = requestContext.current();
    const waitSeconds = request ? this.limits.takeForIp('identities', request.ip) : 0;
    if (waitSeconds > 0) throw OAuthError.rateLimited(waitSeconds, 'identities');
  }

  /** The same before an INSERT that may insert nothing, after which the caller gives the request back. */
  takeReturnableLimit(): CountedRequest {
    const request = requestContext.current();
    if (!request) return { giveBack: () => undefined };
    const taken = this.limits.takeReturnable('identities', keysOfIp(request.ip, ''));
    if (typeof taken === 'number') throw OAuthError.rateLimited(taken, 'identities');
    return taken;
  }

  /** Takes from the limit when it is called for the first time: a transaction that calls it may run again. */
  limitOfOne(): () => void {
    let isTaken = false;
    return () => {
      if (!isTaken) this.takeLimit();
      isTaken = true;
    };
  }

  auditCreated(kind: CustomerCreator, id: string, organizationId: string): void {
    const subject = { kind: 'customer', id } as const;
    this.audit.record({ event: 'identity.created', outcome: 'success', actor: { kind }, subject, organizationId });
  }
}
