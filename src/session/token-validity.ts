import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AccessTokens, type InspectedToken } from '../access-token/access-tokens.js';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import type { RevocableClaims } from '../access-token/session-claims.js';
import { Database } from '../platform/database/database.js';
import { selectIn } from '../platform/database/in-transaction.js';
import type { SqlValue } from '../platform/database/sql-dialect.js';
import { type SelectStatement, selectStatement } from '../platform/database/statement.js';
import { Registry } from '../registry/registry.js';

/** The client of a trusted issuer may have the id of a client of this service. Ids of this service have no space. */
export function qualifiedClientId({ aud, iss, client_id }: RevocableClaims): string {
  return aud === undefined ? `${iss} ${client_id}` : client_id;
}

/** A part of a statement, and the values of its parameters. */
interface Sql {
  text: string;
  values: SqlValue[];
}

/** A SELECT that has a row if a token has not ended: joins by keys only, because MariaDB plans a subquery each time. */
interface ValidityQuery {
  from: string;
  joins: Sql[];
  where: Sql[];
}

const sql = (text: string, ...values: SqlValue[]): Sql => ({ text, values });

/** @param makesSomething whether the token is used in a transaction that makes something with it */
function queryOf(claims: RevocableClaims, makesSomething = false): ValidityQuery {
  const { jti, aud, sid, act } = claims;
  const query = ofOwner(claims);
  const isOfAgent = aud === undefined || aud === 'agent-api';
  if (!isOfAgent && (sid === undefined || makesSomething)) addEnded(query, jti);
  if (act)
    query.joins.push(sql('JOIN agent_session ON agent_session.id = ? AND agent_session.epoch = ?', act.sid, act.ep));
  return query;
}

/**
 * The row that a token ends with: its session, or its customer. A session needs no look at its customer or agent, because
 * what changes these deletes the sessions, or raises their epochs.
 */
function ofOwner({ aud, sub, gen = 0, sid, ep = 0 }: RevocableClaims): ValidityQuery {
  const rowOf = (from: string, ...where: Sql[]): ValidityQuery => ({ from, joins: [], where });
  if (aud === undefined) return ofIssuerToken(sid ?? '');
  if (aud === 'agent-api')
    return rowOf('agent_session', sql('agent_session.id = ? AND agent_session.epoch = ?', sid ?? '', ep));
  if (sid !== undefined) return rowOf('session', sql('session.id = ? AND session.epoch = ?', sid, ep));
  return rowOf('customer', sql('customer.entity_id = ? AND customer.generation = ? AND erased_at IS NULL', sub, gen));
}

/** A trusted issuer's token has no row before it is used for a customer. Its end raises the epoch. */
function ofIssuerToken(id: string): ValidityQuery {
  const join = sql('LEFT JOIN agent_session ON agent_session.id = ? AND agent_session.epoch > 0', id);
  return { from: '(SELECT 1 AS one) AS no_table', joins: [join], where: [sql('agent_session.id IS NULL')] };
}

/** A token without a session, or one that was ended after it had expired. */
function addEnded({ joins, where }: ValidityQuery, jti: string): void {
  joins.push(sql("LEFT JOIN ended AS of_token ON of_token.kind = 'token' AND of_token.value = ?", jti));
  where.push(sql('of_token.kind IS NULL'));
}

type ValidityStatement = SelectStatement<SqlValue[], { is_valid: number }>;

/** Few, because the text depends on the kind of a token only. */
const statements = new Map<string, ValidityStatement>();

function statementOf({ from, joins, where }: ValidityQuery): ValidityStatement {
  const texts = joins.map(({ text }) => text).join(' ');
  const text = `${from} ${texts} WHERE ${where.map((condition) => condition.text).join(' AND ')}`;
  let statement = statements.get(text);
  if (statement === undefined) {
    statement = selectStatement({ columns: ['1 AS is_valid'], from: text, batch: true });
    statements.set(text, statement);
  }
  return statement;
}

/** An entry of `ended`, or the customer of the token as it is now. */
interface ReasonRow {
  kind: 'session' | 'token' | 'customer';
  value: string;
  reason: string;
}

/** Only for an ended token, so it is not batched. */
const FIND_REASONS = selectStatement<SqlValue[], ReasonRow>(
  `SELECT kind, value, reason FROM ended
      WHERE (kind = 'session' AND value IN (?, ?)) OR (kind = 'token' AND value = ?)
    UNION ALL SELECT 'customer', entity_id, '' FROM customer
      WHERE entity_id = ? AND generation = ? AND erased_at IS NULL`,
);

/** In the order in which they are reported, the one that says the most about the event first. */
export const ENDED_REASONS = [
  'revoked',
  'refresh_token_revoked',
  'ancestor_revoked',
  'client_revoked',
  'client_suspended',
  'organization_suspended',
  'customer_generation',
  'agent_changed',
  'session_ended',
] as const satisfies InactiveReason[];

/** Decides whether a token has ended (protocol §3.13). Each check reads the database, so endings apply immediately. */
@Injectable()
export class TokenValidity {
  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
  ) {}

  /** Whether a token has ended, by the registry in memory and one statement. */
  hasEnded(claims: RevocableClaims): Promise<boolean> {
    return this.entryReason(claims) ? Promise.resolve(true) : this.hasNoRow(queryOf(claims));
  }

  /**
   * Whether a token has ended, in a transaction that makes something with the token. A customer's token that was ended
   * after it had expired has an entry of its own, because its session goes on.
   */
  hasEndedIn(manager: EntityManager, claims: RevocableClaims): Promise<boolean> {
    return this.entryReason(claims) ? Promise.resolve(true) : this.hasNoRow(queryOf(claims, true), manager);
  }

  private entryReason(claims: RevocableClaims): InactiveReason | undefined {
    const { organization_id, iat } = claims;
    return this.registry.endedReason({ client_id: qualifiedClientId(claims), organization_id, iat });
  }

  private async hasNoRow(query: ValidityQuery, manager?: EntityManager): Promise<boolean> {
    const statement = statementOf(query);
    const parameters = [...query.joins, ...query.where].flatMap(({ values }) => values);
    const rows = manager ? selectIn(manager, statement, parameters) : this.database.select(statement, parameters);
    return (await rows).length === 0;
  }

  /** Why a token has ended; `undefined` if it has not. Only a token that has ended costs a second statement. */
  async endedReason(claims: RevocableClaims): Promise<InactiveReason | undefined> {
    const ofEntry = this.entryReason(claims);
    if (!ofEntry && !(await this.hasEnded(claims))) return undefined;
    const { jti, sub, aud, gen = 0, sid = '', act } = claims;
    const rows = await this.database.select(FIND_REASONS, [sid, act?.sid ?? '', jti, sub, gen]);
    const reasons = new Set<string>(rows.map((row) => reasonOf(row, claims)));
    if (ofEntry) reasons.add(ofEntry);
    if (aud === 'customer-api' && !rows.some(({ kind }) => kind === 'customer')) reasons.add('customer_generation');
    return ENDED_REASONS.find((reason) => reasons.has(reason)) ?? 'session_ended';
  }
}

/** The session of the agent that obtained a customer token may have ended. */
function reasonOf({ kind, value, reason }: ReasonRow, { act }: RevocableClaims): string {
  const isOfAgent = kind === 'session' && value === act?.sid && reason !== 'agent_changed';
  return isOfAgent ? 'ancestor_revoked' : reason;
}

/** Decides whether an access token is valid, and why not (docs/observability.md lists the reasons). */
@Injectable()
export class TokenInspection {
  constructor(
    private readonly tokens: AccessTokens,
    private readonly validity: TokenValidity,
  ) {}

  /** @param audiences a token of another audience is inactive, and the database is not asked; all if omitted */
  async inspect(token: string, audiences?: string[]): Promise<InspectedToken> {
    const inspected = this.tokens.inspect(token);
    if (inspected.inactiveReason) return inspected;
    const { claims } = inspected;
    if (audiences?.includes(claims.aud) === false) return { claims, inactiveReason: 'other_audience' };
    const inactiveReason = await this.validity.endedReason(claims);
    return inactiveReason ? { claims, inactiveReason } : inspected;
  }
}
