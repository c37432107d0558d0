import { Injectable } from '@nestjs/common';
import { type CustomerSpace } from '../customer/customer.js';
import { NEW_CUSTOMER, newCustomerRow } from '../customer/customers.js';
import { dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { insertStatement, insertsTogether } from '../platform/database/statement.js';
import { Browser } from '../session/browser.entity.js';
import type { NewBrowser } from '../session/browsers.js';
import { Session } from '../session/session.entity.js';

/** A customer that its browser creates together with itself, and the session that leads the browser to it. */
export interface NewVisitor extends CustomerSpace {
  entityId: string;
  sessionId: string;
  browser: NewBrowser;
  createdAt: number;
  expiresAt: Date;
}

const NEW_BROWSER = insertStatement({ into: Browser, columns: ['browser_id', 'secret_hash', 'version'] });

const NEW_SESSION = insertStatement({
  into: Session,
  columns: [
    'id',
    'kind',
    'customer_id',
    'browser_id',
    'organization_id',
    'group_id',
    'depth',
    'epoch',
    'seen_day',
    'created_at',
    'expires_at',
  ],
});

const INSERT = insertsTogether(NEW_CUSTOMER, NEW_BROWSER, NEW_SESSION);

/** Inserts the customers that browsers create together with themselves. */
@Injectable()
export class NewVisitors {
  constructor(private readonly database: Database) {}

  /** @throws ServiceUnavailableException if the database is unavailable; the rows may have been inserted */
  async insert({ entityId, sessionId, browser, createdAt, expiresAt, ...space }: NewVisitor): Promise<void> {
    const { organizationId, groupId } = space;
    const { browserId, secretHash } = browser;
    await this.database.insert(INSERT, [
      ...newCustomerRow(entityId, space, 'browser', createdAt),
      ...([browserId, secretHash, 0] as const),
      ...([sessionId, 'own', entityId, browserId, organizationId, groupId, 0, 0] as const),
      ...([dayOf(createdAt), new Date(createdAt), expiresAt] as const),
    ]);
  }
}
