import { Injectable } from '@nestjs/common';
import { type IdentityScope } from '../customer/customer.js';
import { NEW_CUSTOMER_COLUMNS, newCustomerRow } from '../customer/customers.js';
import { dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import type { SqlValue } from '../platform/database/sql-dialect.js';
import { type BoundWrite, bindWrite, type WriteStatement, writeStatement } from '../platform/database/statement.js';
import type { NewBrowser } from '../session/browsers.js';

/** A customer that its browser creates together with itself, and the session that leads the browser to it. */
export interface NewVisitor extends IdentityScope {
  entityId: string;
  sessionId: string;
  browser: NewBrowser;
  createdAt: number;
  expiresAt: Date;
}

/** Few sizes, because each one is a prepared statement of each connection. */
const BATCH_SIZES = [16, 8, 4, 2, 1];

/** A row of each table. Repeated INSERTs change nothing, because the ids are new. */
const TABLES: { into: string; placeholders: string; row: (visitor: NewVisitor) => SqlValue[] }[] = [
  {
    into: `customer (${NEW_CUSTOMER_COLUMNS})`,
    placeholders: `(${NEW_CUSTOMER_COLUMNS.map(() => '?')})`,
    row: ({ entityId, createdAt, ...scope }) => newCustomerRow(entityId, scope, 'browser', createdAt),
  },
  {
    into: 'browser (browser_id, secret_hash, version)',
    placeholders: '(?, ?, 0)',
    row: ({ browser }) => [browser.browserId, browser.secretHash],
  },
  {
    into: `session (id, kind, customer_id, browser_id, organization_id, group_id, depth, epoch, seen_day, created_at,
      expires_at)`,
    placeholders: `(?, 'own', ?, ?, ?, ?, 0, 0, ?, ?, ?)`,
    row: ({ sessionId, entityId, browser, organizationId, groupId, createdAt, expiresAt }) => [
      ...[sessionId, entityId, browser.browserId, organizationId, groupId],
      ...[dayOf(createdAt), new Date(createdAt), expiresAt],
    ],
  },
];

const STATEMENTS = new Map<number, WriteStatement<SqlValue[]>[]>(
  BATCH_SIZES.map((size) => [
    size,
    TABLES.map(({ into, placeholders }) =>
      writeStatement(({ insertIgnore }) => `${insertIgnore} INTO ${into} VALUES ${Array(size).fill(placeholders)}`),
    ),
  ]),
);

interface Waiting {
  visitor: NewVisitor;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Inserts the customers that browsers create together with themselves. The new visitors of one event-loop tick are
 * inserted together: each batch is one transaction of three INSERTs, and seven visitors are a batch of 4, one of 2 and one
 * of 1 (`BATCH_SIZES`). A transaction costs the database more than the rows (decision 0037).
 */
@Injectable()
export class NewVisitors {
  private waiting: Waiting[] = [];

  constructor(private readonly database: Database) {}

  /** @throws ServiceUnavailableException if the database is unavailable; the rows may have been inserted */
  insert(visitor: NewVisitor): Promise<void> {
    const statements = STATEMENTS.get(1) as WriteStatement<SqlValue[]>[];
    return this.database.executeShared(statements, () => this.addToTick(visitor));
  }

  private addToTick(visitor: NewVisitor): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.waiting.length === 0) setImmediate(() => this.endTick());
      this.waiting.push({ visitor, resolve, reject });
    });
  }

  private endTick(): void {
    const all = this.waiting;
    this.waiting = [];
    while (all.length > 0) {
      const size = BATCH_SIZES.find((each) => each <= all.length) as number;
      void this.insertTogether(all.splice(0, size));
    }
  }

  private async insertTogether(batch: Waiting[]): Promise<void> {
    const statements = STATEMENTS.get(batch.length) as WriteStatement<SqlValue[]>[];
    const writes: BoundWrite[] = TABLES.map(({ row }, index) =>
      bindWrite(
        statements[index] as WriteStatement<SqlValue[]>,
        batch.flatMap(({ visitor }) => row(visitor)),
      ),
    );
    try {
      await this.database.sendTogether(writes);
      for (const { resolve } of batch) resolve();
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
