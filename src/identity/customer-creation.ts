import { Injectable } from '@nestjs/common';
import type { CustomerCreator } from '../customer/customer.js';
import { Limits } from '../oauth/limits.js';
import { Audit, party } from '../platform/audit/audit.js';
import { keysOfIp } from '../platform/network.js';
import { requestContext } from '../platform/request-context/request-context.js';

/** The limit and the audit event of each new customer. */
@Injectable()
export class CustomerCreation {
  constructor(
    private readonly limits: Limits,
    private readonly audit: Audit,
  ) {}

  /**
   * Takes from the limit of new customers and browsers per network, before each INSERT (protocol §2.14).
   *
   * @throws OAuthError `temporarily_unavailable`
   */
  takeLimit(): void {
    const request = requestContext.current();
    if (request) this.limits.takeKeys('identities', keysOfIp(request.ip));
  }

  /** Checks the limit of new customers and browsers per network, without counting. @throws OAuthError 429 */
  assertWithinLimit(): void {
    const request = requestContext.current();
    if (request) this.limits.takeKeys('identities', keysOfIp(request.ip)).giveBack();
  }

  /** Lets the extension refuse a new customer, unless the network is beyond the limit. Nothing is written before. */
  async askExtension(before: (() => Promise<void>) | undefined): Promise<void> {
    if (!before) return;
    this.assertWithinLimit();
    await before();
  }

  /** Takes from the limit when it is called for the first time: a transaction that calls it may run again. */
  limitOnce(): () => void {
    let isTaken = false;
    return () => {
      if (!isTaken) this.takeLimit();
      isTaken = true;
    };
  }

  auditCreated(kind: CustomerCreator, id: string, organizationId: string): void {
    this.audit.success('identity.created', party(kind), party('customer', id), { organizationId });
  }
}
