import { type SqlValue, sqlFlag } from '../platform/database/sql-dialect.js';
import { type SelectStatement, selectStatement } from '../platform/database/statement.js';
import type { InactiveReason } from './inactive-reason.js';
import { familyOf, MAX_ANCESTORS, type RevocableClaims } from './token-lineage.js';

/** The numbers of ids that a statement can have. They are few, because each connection prepares each text. */
const ID_COUNTS = [1, 2, 4, 8, MAX_ANCESTORS + 2];

/** A condition under which a token has ended. Equal texts are the same object, so that there are few. */
export interface EndedCondition {
  text: string;
  /** Selects the condition: one row, in which `ended` is 0 or 1. */
  statement: SelectStatement<SqlValue[], { ended: number }>;
}

const conditions = new Map<string, EndedCondition>();

/** The condition that decides whether a token has ended, including for a statement that must not take effect then. */
export function endedCondition(claims: RevocableClaims): { condition: EndedCondition; parameters: SqlValue[] } {
  const { sub, aud, gen = 0 } = claims;
  const agent = agentOf(claims);
  const { ids, values: parameters } = revocationValues(claims);
  if (aud === 'customer-api') parameters.push(sub, gen);
  if (agent) parameters.push(agent.sub, agent.gen);
  return { condition: conditionFor(ids, aud === 'customer-api', agent !== undefined), parameters };
}

/** The agent with whose generation a token ends; `undefined` if no agent of this service obtained the token. */
export function agentOf({ sub, aud, gen = 0, act }: Pick<RevocableClaims, 'sub' | 'aud' | 'gen' | 'act'>) {
  if (aud === 'agent-api') return { sub, gen };
  return act?.gen === undefined ? undefined : { sub: act.sub, gen: act.gen };
}

/** The parameters of `revocationRows`, and their number of ids. */
function revocationValues(claims: RevocableClaims): { ids: number; values: SqlValue[] } {
  const { jti, client_id, iat, ancestors = [] } = claims;
  const ids = [...new Set([familyOf(jti), jti, ...ancestors])];
  const count = ID_COUNTS.find((each) => each >= ids.length) ?? ids.length;
  const padding = Array<string>(count - ids.length).fill(jti);
  return { ids: count, values: [...ids, ...padding, client_id, new Date(iat * 1000)] };
}

function conditionFor(count: number, isCustomer: boolean, hasAgent: boolean): EndedCondition {
  const key = `${count} ${isCustomer} ${hasAgent}`;
  let condition = conditions.get(key);
  if (condition === undefined) {
    const parts = [
      `EXISTS (SELECT 1 ${revocationRows(count)})`,
      ...(isCustomer ? [CUSTOMER_ENDED] : []),
      ...(hasAgent ? [AGENT_ENDED] : []),
    ];
    const text = `(${parts.join(' OR ')})`;
    condition = { text, statement: selectStatement({ columns: [`${sqlFlag(text)} AS ended`], batch: true }) };
    conditions.set(key, condition);
  }
  return condition;
}

/** The revocations that end a token. Raised generations are read from the customer and the agent. */
const revocationRows = (count: number) => `FROM revocation
    WHERE (kind IN ('jti', 'family') AND value IN (${Array(count).fill('?').join()}))
      OR (kind = 'client' AND value = ? AND issued_before >= ?)`;

const CUSTOMER_ENDED = 'EXISTS (SELECT 1 FROM customer WHERE entity_id = ? AND generation > ?)';

/** A deleted agent has no row, so all its tokens have ended. */
const AGENT_ENDED = 'NOT EXISTS (SELECT 1 FROM agent WHERE id = ? AND generation <= ?)';

/** A join by the whole key, because for a subquery MariaDB would read all revocations of a kind. */
export const revokedAmong = (table: string, id: string, condition: string) => `EXISTS (SELECT 1 FROM ${table}
    LEFT JOIN revocation AS token ON token.kind = 'jti' AND token.value = ${id}
    LEFT JOIN revocation AS family ON family.kind = 'family' AND family.value = ${id}
    WHERE ${condition} AND (token.value IS NOT NULL OR family.value IS NOT NULL))`;

/** Whether the client of a row was deleted after a time, for statements about many rows. */
export const clientEndedSince = (clientId: string, time: string) =>
  `EXISTS (SELECT 1 FROM revocation WHERE kind = 'client' AND value = ${clientId} AND issued_before >= ${time})`;

/** Whether the agent of a row was deleted or has a higher generation, for statements about many rows. */
export const agentEndedSince = (agentId: string, generation: string) => `(${agentId} IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM agent WHERE agent.id = ${agentId} AND agent.generation <= ${generation}))`;

/** The rows of a table that an expired revocation of a token or family names. The parameter is the time. */
export const ofExpiredRevocations = (table: string, id: string) => `revocation JOIN ${table} ON ${id} = revocation.value
    WHERE revocation.kind IN ('jti', 'family') AND revocation.expires_at < ?`;

interface EndingRow {
  kind: 'jti' | 'family' | 'client' | 'customer' | 'agent';
  value: string;
}

/** The first reason is reported, because it says the most about the event that ended the token. */
export const ENDED_REASONS = [
  'revoked',
  'family_revoked',
  'ancestor_revoked',
  'client_revoked',
  'customer_generation',
  'agent_generation',
  'agent_deleted',
] as const satisfies InactiveReason[];

/** Selects every condition that has ended a token. Only for an ended token, so it is neither batched nor fast. */
export function endingRowsStatement(claims: RevocableClaims) {
  const { sub, gen = 0 } = claims;
  const agent = agentOf(claims) ?? { sub, gen: Number.MAX_SAFE_INTEGER };
  const { ids, values } = revocationValues(claims);
  const statement = selectStatement<SqlValue[], EndingRow>(
    `SELECT kind, value ${revocationRows(ids)}
      UNION ALL SELECT 'customer', entity_id FROM customer WHERE entity_id = ? AND generation > ?
      UNION ALL SELECT 'agent', id FROM agent WHERE id = ? AND generation > ?`,
  );
  return { statement, parameters: [...values, sub, gen, agent.sub, agent.gen] };
}

/** Why a token has ended. Without a row, its agent has no row either, or the revocation was deleted meanwhile. */
export function reasonOf(rows: EndingRow[], claims: RevocableClaims): InactiveReason {
  const reasons = new Set(rows.map((row) => reasonOfRow(row, claims)));
  return ENDED_REASONS.find((reason) => reasons.has(reason)) ?? (agentOf(claims) ? 'agent_deleted' : 'revoked');
}

function reasonOfRow({ kind, value }: EndingRow, { jti }: RevocableClaims): InactiveReason {
  if (kind === 'client') return 'client_revoked';
  if (kind === 'customer') return 'customer_generation';
  if (kind === 'agent') return 'agent_generation';
  if (value !== jti && value !== familyOf(jti)) return 'ancestor_revoked';
  return kind === 'jti' && value === jti ? 'revoked' : 'family_revoked';
}
