import { randomUUID } from 'node:crypto';
import { expect, it, vi } from 'vitest';
import { CustomerEntity } from '../../../src/customer/customer.entity.js';
import { Ended } from '../../../src/feed/ended.entity.js';
import { Database } from '../../../src/platform/database/database.js';
import { Browser } from '../../../src/session/browser.entity.js';
import { Session, type SessionKind } from '../../../src/session/session.entity.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { endSessionsAsOperator } from '../../support/end-sessions.js';
import { ACME } from '../../support/test-registry.js';
import type { TestResponse } from '../../support/test-service.js';
import { ADMIN_TOKEN, useService } from '../../support/use-service.js';

const service = useService();

/** The sessions of a customer that has as many as protocol §3.10 allows, with the first browser. */
const COUNTS: Partial<Record<SessionKind, number>> = {
  own: 19,
  sign_in: 100,
  transferred: 10,
  refresh: 10,
  code: 60,
  moved: 120,
};
const ALL_COUNT = 320;
const WITH_BROWSER: SessionKind[] = ['own', 'sign_in', 'transferred'];
const MADE_WITH_TOKEN: SessionKind[] = ['transferred', 'refresh', 'code', 'moved'];

/** Fills a customer to every bound. Three in four of its sessions by transfer are made with others of them. */
async function fullCustomer() {
  const first = await service.visit();
  const { entity_id: entityId, access_token: token } = first.body as { entity_id: string; access_token: string };
  const [own] = (await service.rowsOf(Session).findBy({ customerId: entityId })) as [Session];
  const rows: Session[] = [];
  const browsers: Browser[] = [];
  for (const [kind, count] of Object.entries(COUNTS) as [SessionKind, number][])
    for (let index = 0; index < count; index++) {
      const browserId = WITH_BROWSER.includes(kind) ? randomUUID() : null;
      if (browserId !== null) browsers.push({ browserId, secretHash: randomUUID(), version: 0 });
      const parentId = MADE_WITH_TOKEN.includes(kind) ? (index % 4 === 0 ? own.id : (rows.at(-1) as Session).id) : null;
      const place = browserId === null ? {} : { browserId, organizationId: ACME, groupId: '' };
      const about = { id: randomUUID(), kind, customerId: entityId, parentId, parentEpoch: parentId && 0 };
      rows.push({ ...empty(own), ...about, ...place, expiresAt: own.expiresAt } as Session);
    }
  await service.rowsOf(Browser).insert(browsers);
  for (let at = 0; at < rows.length; at += 50) await service.rowsOf(Session).insert(rows.slice(at, at + 50));
  return { entityId, token, cookie: cookieHeader(first) };
}

/** The columns of a session that no browser has. */
const empty = (own: Session) => ({ ...own, browserId: null, organizationId: null, groupId: null });

/** Each event, with the numbers of sessions and browsers that remain, and of the entries for verifiers. */
const EVENTS: [string, (customer: Awaited<ReturnType<typeof fullCustomer>>) => Promise<TestResponse>, number[]][] = [
  ['the end of its token', ({ token }) => service.send('DELETE', TOKEN, bearer(token)), [120, 130, 141]],
  ['end_sessions', ({ entityId }) => endSessionsAsOperator(service, ADMIN_TOKEN, entityId), [120, 130, 1]],
  [
    'end_sessions with browsers',
    ({ entityId }) => endSessionsAsOperator(service, ADMIN_TOKEN, entityId, { browsers: true }),
    [0, 0, 1],
  ],
  ['its erasure', ({ entityId }) => service.erase(entityId), [0, 0, 1]],
];

it.each(EVENTS)(
  'protocol §3.10: %s is one transaction for a customer with as many sessions as it can have',
  async (...row) => {
    const [, act, [sessionCount, browserCount, entryCount]] = row;
    const browsersBefore = await service.rowsOf(Browser).count();
    const entriesBefore = await service.rowsOf(Ended).count();
    const customer = await fullCustomer();
    const { entityId: customerId } = customer;
    expect(await service.rowsOf(Session).countBy({ customerId })).toBe(ALL_COUNT);
    const transactions = vi.spyOn(service.application.get(Database), 'transaction');
    expect((await act(customer)).status).toBe(200);
    expect(transactions).toHaveBeenCalledTimes(1);
    expect({
      sessions: await service.rowsOf(Session).countBy({ customerId }),
      browsers: (await service.rowsOf(Browser).count()) - browsersBefore,
      entries: (await service.rowsOf(Ended).count()) - entriesBefore,
    }).toEqual({ sessions: sessionCount, browsers: browserCount, entries: entryCount });
    const exists = await service.rowsOf(CustomerEntity).existsBy({ entityId: customerId });
    expect(exists).toBe(act !== EVENTS.at(-1)?.[1]);
  },
);
