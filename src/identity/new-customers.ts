import { Injectable } from '@nestjs/common';
import { Audit, party } from '../audit/audit.js';
import { Database } from '../platform/database/database.js';
import type { SqlValue } from '../platform/database/sql-dialect.js';
import { type BoundWrite, bindWrite, type WriteStatement, writeStatement } from '../platform/database/statement.js';
import { keysOfIp } from '../platform/network.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { type CountedRequest, RateLimits } from '../rate-limit/rate-limits.js';
import type { CustomerCreator, IdentityScope } from './customer.js';
import { CUSTOMER_COLUMNS, newCustomerRow } from './customer-statements.js';
import type { NewBrowser } from './new-browsers.js';

/** A customer that its browser creates together with itself. */
interface NewCustomer extends IdentityScope {
  entityId: string;
  browser: NewBrowser;
  createdAt: number;
}

/** Few sizes, because each one is a prepared statement of each connection. */
const BATCH_SIZES = [16, 8, 4, 2, 1];

/** A row of each table. Repeated INSERTs change nothing, because the ids are new. */
const TABLES: { into: string; placeholders: string; row: (customer: NewCustomer) => SqlValue[] }[] = [
  {
    into: `customer (${CUSTOMER_COLUMNS})`,
    placeholders: `(${CUSTOMER_COLUMNS.map(() => '?')})`,
    row: ({ entityId, browser, createdAt, ...scope }) =>
      newCustomerRow(entityId, scope, 'browser', createdAt, browser.today),
  },
  {
    into: 'browser (browser_id, secret_hash, version)',
    placeholders: '(?, ?, 0)',
    row: ({ browser }) => [browser.browserId, browser.secretHash],
  },
  {
    into: `browser_customer (browser_id, entity_id, organization_id, group_id, origin, began_in, generation, seen_day)`,
    placeholders: `(?, ?, ?, ?, 'own', ?, 0, ?)`,
    row: ({ browser: { browserId, today }, entityId, organizationId, groupId }) => [
      ...[browserId, entityId, organizationId, groupId],
      ...[browserId, today],
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
  customer: NewCustomer;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * The limit and the audit event of each new customer, and the INSERTs of those that browsers create together with
 * themselves. The new customers of one event-loop tick are inserted together: each batch is one transaction of three
 * INSERTs, and seven customers are a batch of 4, one of 2 and one of 1 (`BATCH_SIZES`). A transaction costs the database
 * more than the rows (docs/decisions/0035-customers-browsers-links.md).
 */
@Injectable()
export class NewCustomers {
  private waiting: Waiting[] = [];

  constructor(
    private readonly database: Database,
    private readonly limits: RateLimits,
    private readonly audit: Audit,
  ) {}

  /**
   * Takes from the limit of new customers and browsers per network, before each INSERT (protocol §2.14).
   *
   * @throws OAuthError `temporarily_unavailable`
   */
  takeLimit(): void {
    const request = requestContext.current();
    if (request) this.limits.take('identities', keysOfIp(request.ip));
  }

  /** The same before an INSERT that may insert nothing, after which the caller gives the request back. */
  takeReturnableLimit(): CountedRequest {
    const request = requestContext.current();
    if (!request) return { giveBack: () => undefined };
    return this.limits.takeReturnable('identities', keysOfIp(request.ip));
  }

  /** Takes from the limit when it is called for the first time: a transaction that calls it may run again. */
  limitOnce(): () => void {
    let isTaken = false;
    return () => {
      if (!isTaken) this.takeLimit();
      isTaken = true;
    };
  }

  auditCreated(kind: CustomerCreator, id: string, organizationId: string): void {
    this.audit.success('identity.created', party(kind), party('customer', id), { organizationId });
  }

  /** @throws ServiceUnavailableException if the database is unavailable; the rows may have been inserted */
  insert(customer: NewCustomer): Promise<void> {
    const statements = STATEMENTS.get(1) as WriteStatement<SqlValue[]>[];
    return this.database.executeShared(statements, () => this.addToTick(customer));
  }

  private addToTick(customer: NewCustomer): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.waiting.length === 0) setImmediate(() => this.endTick());
      this.waiting.push({ customer, resolve, reject });
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
        batch.flatMap(({ customer }) => row(customer)),
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
