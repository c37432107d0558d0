import { Injectable } from '@nestjs/common';
import { In, MoreThan } from 'typeorm';
import { DAY_MS } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { portionsOf } from '../platform/database/value-list.js';
import { AgentSession } from './agent/agent-session.entity.js';
import { Session, type SessionKind } from './session.entity.js';

type Redeemable = Session | AgentSession;

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
    const { manager } = this.database;
    const expiresAt = new Date(now.getTime() - LONG_AGO_MS);
    const page = { select: { id: true, kind: true, clientId: true }, order: { id: 'ASC' }, take: size } as const;
    for (const entity of [Session, AgentSession]) {
      for (let after: string | undefined = ''; after !== undefined; ) {
        const rows: Redeemable[] = await manager.find<Redeemable>(entity, { ...page, where: { id: MoreThan(after) } });
        const ended = rows.filter(
          ({ kind, clientId }) => REDEEMABLE_KINDS.includes(kind) && clientIds.has(clientId ?? ''),
        );
        for (const some of portionsOf(ended)) {
          const where = { id: In(some.map(({ id }) => id)), expiresAt: MoreThan(expiresAt) };
          await manager.update<Redeemable>(entity, where, { expiresAt });
        }
        yield 0;
        after = rows.length < size ? undefined : rows.at(-1)?.id;
      }
    }
  }
}
