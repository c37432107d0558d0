import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import type { RefreshContent } from './refresh-content.js';

/** Records audit events of refresh tokens. */
@Injectable()
export class RefreshAudit {
  constructor(private readonly audit: Audit) {}

  issued(family: string, content: RefreshContent): void {
    this.record('issued', 'success', family, content);
  }

  redeemed(family: string, content: RefreshContent): void {
    this.record('redeemed', 'success', family, content);
  }

  replayed(family: string, content: RefreshContent): void {
    this.record('replayed', 'failure', family, content);
  }

  private record(
    action: 'issued' | 'redeemed' | 'replayed',
    outcome: 'success' | 'failure',
    family: string,
    { owner, clientId, organizationId }: RefreshContent,
  ): void {
    this.audit.record({
      event: `refresh_token.${action}`,
      outcome,
      actor: { kind: 'client', id: clientId },
      subject: owner,
      organizationId,
      clientId,
      details: { family },
    });
  }
}
