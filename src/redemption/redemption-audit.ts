import type { Audit } from '../platform/audit/audit.js';
import { party } from '../platform/audit/audit.js';
import type { AuditParty } from '../platform/audit/audit-event.js';

export type CodeKind = 'transfer_token' | 'authorization_code';

/** Whose code or refresh token it is. */
export interface RedeemableParties {
  /** The customer or agent. */
  subject: AuditParty;
  clientId: string;
  organizationId: string;
  /** The id of the session; absent while a code is not redeemed. */
  session?: string;
}

/** Records what happened to a code or a refresh token. Audit events do not contain its hash. */
export function auditRedeemable(
  audit: Audit,
  kind: CodeKind | 'refresh_token',
  action: 'issued' | 'redeemed' | 'replayed',
  { subject, clientId, organizationId, session }: RedeemableParties,
): void {
  audit.record({
    event: `${kind}.${action}`,
    outcome: action === 'replayed' ? 'failure' : 'success',
    actor: party('client', clientId),
    ...{ subject, organizationId, clientId },
    ...(session !== undefined && { details: { session } }),
  });
}
