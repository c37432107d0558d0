import type { RevocableClaims, TokenLineage } from '../access-token/token-lineage.js';
import { party } from '../audit/audit.js';
import type { AuditEvent } from '../audit/audit-event.js';
import type { EntityRow } from '../platform/database/entity-row.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import type { RefreshFamily } from './refresh-family.entity.js';

/** The access that a refresh family gives. */
export interface RefreshContent {
  /** The agent that granted access, or the customer that stays on a device. */
  owner: { kind: 'agent' | 'customer'; id: string };
  clientId: string;
  organizationId: string;
  /** Scopes separated by spaces; empty for a customer. */
  scope: string;
  /** The lineage of the family's tokens. `gen` is the owner's generation when access was granted. */
  lineage: TokenLineage;
}

/** The columns that say what a family gives, and with what it ends. */
export const CONTENT_COLUMNS = [
  'id',
  'client_id',
  'agent_id',
  'customer_id',
  'organization_id',
  'scope',
  'lineage',
  'begun_at',
  'generation',
] as const;

type ContentRow = EntityRow<RefreshFamily, (typeof CONTENT_COLUMNS)[number]>;

export function contentOf(row: ContentRow): RefreshContent {
  const { client_id: clientId, organization_id: organizationId, scope, agent_id, customer_id, generation } = row;
  const owner =
    customer_id === null
      ? ({ kind: 'agent', id: agent_id as string } as const)
      : ({ kind: 'customer', id: customer_id } as const);
  const lineage = { ...(JSON.parse(row.lineage) as Omit<TokenLineage, 'gen'>), gen: generation };
  return { owner, clientId, organizationId, scope, lineage };
}

/** The family as claims that the denylist can check, because a family ends with its owner, client and ancestors. */
export function claimsOfFamily(row: ContentRow): RevocableClaims {
  const { owner, clientId, lineage } = contentOf(row);
  const aud = owner.kind === 'customer' ? 'customer-api' : 'agent-api';
  return { jti: row.id, sub: owner.id, client_id: clientId, iat: timeOf(row.begun_at) / 1000, aud, ...lineage };
}

/** The audit event of a refresh token. */
export function refreshEvent(
  action: 'issued' | 'redeemed' | 'replayed',
  family: string,
  { owner: subject, clientId, organizationId }: RefreshContent,
): AuditEvent {
  const outcome = action === 'replayed' ? 'failure' : 'success';
  const actor = party('client', clientId);
  return { event: `refresh_token.${action}`, outcome, actor, subject, organizationId, clientId, details: { family } };
}
