import type { RevocableClaims, TokenLineage } from '../access-token/token-lineage.js';
import type { EntityRow } from '../platform/database/entity-row.js';
import { timeOf } from '../platform/database/sql-time.js';
import type { RefreshContent } from './refresh-content.js';
import type { RefreshFamily } from './refresh-family.entity.js';

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
  const { client_id: clientId, organization_id: organizationId, scope, customer_id } = row;
  const owner = customer_id === null ? agent(row.agent_id) : ({ kind: 'customer', id: customer_id } as const);
  const stored: Omit<TokenLineage, 'gen'> = row.lineage === null ? {} : JSON.parse(row.lineage);
  return { owner, clientId, organizationId, scope, lineage: { ...stored, gen: row.generation ?? 0 } };
}

/** The family as claims that the denylist can check, because a family ends with its owner, client and ancestors. */
export function claimsOfFamily(row: ContentRow): RevocableClaims {
  return revocableClaims(row.id, contentOf(row), timeOf(row.begun_at));
}

/** @param begunAt milliseconds since 1970 */
export function revocableClaims(family: string, content: RefreshContent, begunAt: number): RevocableClaims {
  const { owner, clientId, lineage } = content;
  const aud = owner.kind === 'customer' ? 'customer-api' : 'agent-api';
  return { jti: family, sub: owner.id, client_id: clientId, iat: begunAt / 1000, aud, ...lineage };
}

const agent = (id: string) => ({ kind: 'agent', id }) as const;
