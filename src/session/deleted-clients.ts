import { Injectable } from '@nestjs/common';
import { DAY_MS } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import type { SqlValue } from '../platform/database/sql-dialect.js';
import { type EntityRow, selectStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import type { Session, SessionKind } from './session.entity.js';

type Table = 'session' | 'agent_session';

/** What a client may still redeem. Sessions of other kinds have access tokens only, or belong to a browser. */
const REDEEMABLE_KINDS: readonly string[] = ['code', 'refresh', 'proof'] satisfies SessionKind[];
/** So long ago that the purge deletes the session at once, if nothing refers to it. */
const LONG_AGO_MS = 3 * DAY_MS;

/** Ends the codes, refresh tokens and proofs of deleted clients, so that a new client with the id inherits none. */
@Injectable()
export class DeletedClients {
  constructor(private readonly database: Database) {}

  /** Reads the tables by their primary keys, because they have no index on the client. */
  async *endInSteps(clientIds: ReadonlySet<string>, size: number, now: Date): AsyncGenerator<number, void> {
    for (const table of ['session', 'agent_session'] as const) {
      const find = selectStatement<[after: string], EntityRow<Session, 'id' | 'kind' | 'client_id'>>(
        `SELECT id, kind, client_id FROM ${table} WHERE id > ? ORDER BY id LIMIT ${size}`,
      );
      for (let after: string | undefined = ''; after !== undefined; ) {
        const rows: EntityRow<Session, 'id' | 'kind' | 'client_id'>[] = await this.database.select(find, [after]);
        const ended = rows.filter(
          ({ kind, client_id }) => REDEEMABLE_KINDS.includes(kind) && clientIds.has(client_id ?? ''),
        );
        for (const some of portionsOf(ended)) await this.expire(table, some, new Date(now.getTime() - LONG_AGO_MS));
        yield 0;
        after = rows.length < size ? undefined : rows.at(-1)?.id;
      }
    }
  }

  private async expire(table: Table, rows: { id: string }[], expiresAt: Date): Promise<void> {
    const ids = valueList(rows.map(({ id }) => id));
    const expire = writeStatement<SqlValue[]>(
      `UPDATE ${table} SET expires_at = ? WHERE id IN (${placeholdersFor(ids)}) AND expires_at > ?`,
    );
    await this.database.execute(expire, [expiresAt, ...ids, expiresAt]);
  }
}
