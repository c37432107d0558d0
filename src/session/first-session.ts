import type { CustomerSpace } from '../customer/customer.js';
import { type ColumnValues, insertStatement } from '../platform/database/statement.js';
import { Session } from './session.entity.js';

const COLUMNS = [
  'id',
  'kind',
  'customer_id',
  'organization_id',
  'group_id',
  'browser_id',
  'client_id',
  'refresh_id_hash',
  'current_hash',
  'used_at',
  'depth',
  'epoch',
  'seen_day',
  'created_at',
  'expires_at',
] as const;

/** Inserts the session of a customer that is created together with it. */
export const NEW_SESSION = insertStatement({ into: Session, columns: COLUMNS });

interface FirstSession extends CustomerSpace {
  entityId: string;
  sid: string;
  now: number;
  seenDay: number;
  expiresAt: Date;
  browserId?: string;
  /** The refresh token of a client. */
  refresh?: { clientId: string; refreshIdHash: string; currentHash: string };
}

export function newSessionRow(session: FirstSession): ColumnValues<Session, typeof COLUMNS> {
  const { entityId, organizationId, groupId, sid, now, seenDay, expiresAt, browserId = null, refresh } = session;
  return [
    ...([sid, 'own', entityId, organizationId, groupId, browserId] as const),
    ...([refresh?.clientId ?? null, refresh?.refreshIdHash ?? null, refresh?.currentHash ?? null] as const),
    ...([refresh ? new Date(now) : null, 0, 0, seenDay, new Date(now), expiresAt] as const),
  ];
}
