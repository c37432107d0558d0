import { Injectable } from '@nestjs/common';
import { Audit, party } from '../audit/audit.js';
import type { EntityRow } from '../platform/database/entity-row.js';
import type { OneTimeCode } from './one-time-code.entity.js';

/** The columns of a code that audit events contain. They do not include the hash of the code. */
type AuditedCode = EntityRow<OneTimeCode, 'kind' | 'client_id' | 'subject' | 'organization_id'>;

/** Records audit events of transfer tokens and authorization codes. */
@Injectable()
export class CodeAudit {
  constructor(private readonly audit: Audit) {}

  issued(code: AuditedCode): void {
    this.record(code, 'issued', 'success');
  }

  /** @param jti of the token that the code gave */
  redeemed(code: AuditedCode, jti: string): void {
    this.record(code, 'redeemed', 'success', jti);
  }

  replayed(code: AuditedCode, jti: string): void {
    this.record(code, 'replayed', 'failure', jti);
  }

  private record(
    { kind, client_id, subject, organization_id }: AuditedCode,
    action: 'issued' | 'redeemed' | 'replayed',
    outcome: 'success' | 'failure',
    jti?: string,
  ): void {
    const isTransfer = kind === 'transfer';
    this.audit.record({
      event: `${isTransfer ? 'transfer_token' : 'authorization_code'}.${action}`,
      outcome,
      actor: party('client', client_id),
      subject: party(isTransfer ? 'customer' : 'agent', subject),
      organizationId: organization_id,
      clientId: client_id,
      ...(jti && { details: { jti } }),
    });
  }
}
