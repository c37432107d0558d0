import type { SqlValue } from '../platform/database/sql-dialect.js';
import { type EntityRow, selectStatement } from '../platform/database/statement.js';
import { placeholdersFor } from '../platform/database/value-list.js';
import { AGENT_COLUMNS, AGENT_JOIN, type AgentColumns } from './agent/agent-columns.js';
import type { Session } from './session.entity.js';

const COLUMNS = [
  'id',
  'kind',
  'customer_id',
  'browser_id',
  'parent_id',
  'parent_epoch',
  'depth',
  'epoch',
  'client_id',
  'redeemed_at',
  'refresh_id_hash',
  'used_at',
  'seen_day',
  'signed_in_day',
  'created_at',
  'expires_at',
] as const;

type Columns = EntityRow<Session, (typeof COLUMNS)[number]>;

/** A session of a customer, as bounds and endings need it. */
export type StoredSession = Columns & EntityRow<Session, 'agent_session_id' | 'agent_epoch'>;

const SELECT_ALL = `SELECT ${COLUMNS.join(', ')}, agent_session_id, agent_epoch FROM session WHERE customer_id = ?`;
export const FIND_ALL = selectStatement<[customerId: string], StoredSession>(SELECT_ALL);
/** No code among them is redeemed before the transaction ends. */
export const LOCK_ALL = selectStatement<[customerId: string], StoredSession>(({ forUpdate }) => SELECT_ALL + forUpdate);

const REDEEMABLE_COLUMNS = [
  'id',
  'kind',
  'customer_id',
  'client_id',
  'epoch',
  'code_challenge',
  'redeemed_network',
  'current_hash',
  'previous_hash',
  'successor_nonce',
  'seen_day',
  'expires_at',
] as const;

/** A session of a code or a refresh token, with its customer. */
export interface RedeemableRow extends EntityRow<Session, (typeof REDEEMABLE_COLUMNS)[number]>, AgentColumns {
  organization_id: string;
  group_id: string;
  /** Of the customer. */
  generation: number;
  has_user: boolean | number;
  /** Milliseconds since the redemption, by the clock of the database; `null` if the code is not redeemed. */
  redeemed_for_ms: number | null;
}

const findWithCustomer = (condition: string) =>
  selectStatement<[hash: string], RedeemableRow>({
    columns: [
      ...[...REDEEMABLE_COLUMNS.map((column) => `session.${column}`), ...AGENT_COLUMNS],
      ...['customer.organization_id', 'customer.group_id', 'customer.generation', 'customer.has_user'],
      ({ millisecondsSince }) => `${millisecondsSince('session.redeemed_at')} AS redeemed_for_ms`,
    ],
    from: `session JOIN customer ON customer.entity_id = session.customer_id ${AGENT_JOIN} WHERE ${condition}`,
    batch: true,
  });
export const FIND_BY_CODE = findWithCustomer('session.code_hash = ?');
export const FIND_BY_REFRESH_TOKEN = findWithCustomer('session.refresh_id_hash = ?');

/** A session of a device: of a browser, or with a refresh token. */
export type DeviceRow = Columns & EntityRow<Session, 'organization_id' | 'group_id'> & AgentColumns;

const DEVICE_COLUMNS = [...COLUMNS, 'organization_id', 'group_id'].map((column) => `session.${column}`);
const SELECT_DEVICES = `SELECT ${[...DEVICE_COLUMNS, ...AGENT_COLUMNS].join(', ')} FROM session ${AGENT_JOIN}`;

export const FIND_DEVICES = selectStatement<[customerId: string, now: Date], DeviceRow>(
  `${SELECT_DEVICES}
    WHERE session.customer_id = ? AND (session.browser_id IS NOT NULL OR session.refresh_id_hash IS NOT NULL)
      AND session.expires_at > ?
    ORDER BY session.seen_day DESC, session.used_at DESC, session.id`,
);

export const findOfBrowsers = (browserIds: string[]) =>
  selectStatement<string[], DeviceRow>(
    `${SELECT_DEVICES} WHERE session.browser_id IN (${placeholdersFor(browserIds)})`,
  );

/** What an export has of a session: no hash, and no id of a browser, by which exports could be joined. */
export const FIND_EXPORTED = selectStatement<[customerId: string], Record<string, SqlValue>>(
  `SELECT id, kind, customer_id, organization_id, group_id, parent_id, parent_epoch, depth, epoch, client_id,
      (SELECT agent_id FROM agent_session WHERE agent_session.id = session.agent_session_id) AS agent_id,
      redeemed_at, used_at, seen_day, signed_in_day, created_at, expires_at
    FROM session WHERE customer_id = ? ORDER BY id`,
);
