import { randomBytes, randomInt } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { DataSource, type EntityMetadata, type EntityTarget, type ObjectLiteral, type QueryResult } from 'typeorm';
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { SignInFailure } from '../../../src/agent-auth/session/sign-in-failure.entity.js';
import { CustomerEntity } from '../../../src/customer/customer.entity.js';
import { CustomerEvent } from '../../../src/feed/customer-event.entity.js';
import { Ended } from '../../../src/feed/ended.entity.js';
import { CustomerDataParticipants } from '../../../src/identity/customer-data-participants.js';
import { type Purged } from '../../../src/identity/purge.js';
import { Database } from '../../../src/platform/database/database.js';
import { acquireLease, type Lease, releaseLease } from '../../../src/platform/database/lease.js';
import { asStored } from '../../../src/platform/database/sqlite-statements.js';
import { uuidv7 } from '../../../src/platform/uuid.js';
import { ProofUse } from '../../../src/redemption/proof-use.entity.js';
import { Browser } from '../../../src/session/browser.entity.js';
import { Session } from '../../../src/session/session.entity.js';
import { SessionPurge } from '../../../src/session/session-purge.js';
import { OneTimeCode } from '../../../src/token/stores/one-time-code.entity.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { atNextTransaction, intercepted, interceptTransactions } from '../../support/dying-transactions.js';
import { browserPartOf, expectNoOrphans, identitiesOf, sessionsOfBrowser } from '../../support/identities.js';
import { forgetPurgeOfDay, issueAgentToken, purge, runCommand } from '../../support/operator-commands.js';
import { ACME } from '../../support/test-registry.js';
import { newCustomer } from '../../support/transfers.js';
import { DAY_SECONDS, serviceOfTest, useService } from '../../support/use-service.js';

const GROUP = `/v2/customer/${ACME}/sales/token`;
const EXPIRING = [CustomerEvent, Ended, OneTimeCode, ProofUse, SignInFailure] as const;
/** The result of a purge that has deleted this number of rows from each of these tables. */
const purgedRows = (rows: number): Purged => ({
  ...{ customer_event: rows, ended: rows, one_time_code: rows, proof_use: rows, sign_in_failure: rows },
  ...{ registry: 0, session: 0, agent_session: 0, customer: 0 },
});
const NO_ROWS = purgedRows(0);

const service = useService();
let dataSource: DataSource;
let database: Database;
beforeAll(async () => {
  dataSource = service.application.get(DataSource);
  database = service.application.get(Database);
});
beforeEach(async () => {
  for (const entity of [...EXPIRING, Session, CustomerEntity, Browser])
    await dataSource.getRepository(entity).createQueryBuilder().delete().execute();
  await forgetPurgeOfDay(service);
  // A failed test can leave its lease.
  await freeLease();
});

describe('the purge of expired rows', () => {
  it('deletes the expired rows of every table, and no others', async () => {
    const now = service.clock.now();
    for (const entity of EXPIRING) {
      await insertRows(entity, 3, new Date(now - 1_000));
      await insertRows(entity, 2, new Date(now + 60_000));
    }
    expect(await purge(service)).toEqual(purgedRows(3));
    expect(await purge(service)).toEqual(NO_ROWS);
    for (const entity of EXPIRING) expect(await dataSource.getRepository(entity).count()).toBe(2);
    service.clock.advance({ seconds: 61 });
    expect(await purge(service)).toEqual(purgedRows(2));
  });

  it('deletes batches of 1,000 rows', async () => {
    const sizes: Record<string, number[]> = {};
    for (const entity of EXPIRING) await insertRows(entity, 1_001, new Date(service.clock.now() - 1_000));
    onStatement(/^\s*DELETE FROM (\w+)/, (deleted, [, table = '']) => {
      sizes[table] ??= [];
      sizes[table].push(deleted);
    });
    expect(await purge(service)).toEqual(purgedRows(1_001));
    for (const table of ['ended', 'proof_use']) expect(sizes[table]).toEqual([1_000, 1]);
  });
});

describe('a table that cannot be purged', () => {
  const error = new Error('an error of the database');
  const countOf = (entity: EntityTarget<ObjectLiteral>) => dataSource.getRepository(entity).count();

  it('does not stop the purge of the others: the log and the error of the command name the table', async () => {
    await new TestBrowser(service).visit();
    service.passDays(740);
    for (const entity of EXPIRING) await insertRows(entity, 1, new Date(service.clock.now() - 1_000));
    interceptTransactions(service, async (sql, send) => {
      if (sql.includes('DELETE FROM ended')) throw error;
      return send();
    });
    const warn = vi.spyOn(Logger.prototype, 'warn');
    await expect(runCommand(service, 'purge')).rejects.toThrow(
      /^tables that cannot be purged: ended; purged: \{.*"customer":1/,
    );
    expect(warn.mock.calls.join()).toMatch(/ended.*an error of the database/);
    const counts = await Promise.all([...EXPIRING, Session, Browser, CustomerEntity].map(countOf));
    expect(counts).toEqual([0, 1, 0, 0, 0, 0, 0, 0]);
    vi.restoreAllMocks();
    expect((await purge(service))?.ended).toBe(1);
  });

  /** The next purge fails when it begins with sessions. */
  function failAtSessions(act: () => unknown = () => undefined): void {
    vi.spyOn(service.application.get(SessionPurge), 'deleteInSteps').mockImplementation(
      // biome-ignore lint/correctness/useYield: the first step fails
      async function* () {
        act();
        throw error;
      },
    );
  }

  it('leaves the customers of sessions to the next purge if it is that of sessions', async () => {
    await new TestBrowser(service).visit();
    service.passDays(740);
    await insertRows(ProofUse, 1, new Date(service.clock.now() - 1_000));
    failAtSessions();
    await expect(runCommand(service, 'purge')).rejects.toThrow('tables that cannot be purged: session; purged: ');
    expect(await Promise.all([ProofUse, Session, CustomerEntity].map(countOf))).toEqual([0, 1, 1]);
    vi.restoreAllMocks();
    expect(await purge(service)).toMatchObject({ session: 1, customer: 1 });
  });

  it('ends the purge if the database is unreachable, with one warning', async () => {
    failAtSessions(() => vi.spyOn(database, 'transaction').mockRejectedValue(error));
    const warn = vi.spyOn(Logger.prototype, 'warn');
    await expect(runCommand(service, 'purge')).rejects.toThrow(error);
    expect(warn.mock.calls.filter(([message]) => /cannot be purged/.test(message))).toHaveLength(1);
  });
});

describe('the purge of idle browsers', () => {
  it('purges all customers of a browser whose cookies have expired, and no other customers', async () => {
    const idle = new TestBrowser(service);
    const erased = new TestBrowser(service);
    const active = new TestBrowser(service);
    const agent = await issueAgentToken(service);
    const { entity_id: ofBackend } = (await service.post(TOKEN, agentTokenBody(), bearer(agent))).body;
    const deletedIds = [(await idle.visit()).body.entity_id, (await idle.visit({}, GROUP)).body.entity_id];
    const remainingIds = [(await active.visit()).body.entity_id, (await active.visit({}, GROUP)).body.entity_id];
    const { entity_id } = (await erased.visit()).body;
    await service.erase(entity_id);
    await service.rowsOf(Ended).createQueryBuilder().delete().execute();

    service.passDays(730);
    expect((await active.visit()).body.entity_id).toBe(remainingIds[0]);
    expect((await active.visit({}, GROUP)).body.entity_id).toBe(remainingIds[1]);
    expect(await purge(service)).toMatchObject({ customer: 0, session: 0 });
    service.passDays(2);
    expect(await purge(service)).toMatchObject({ customer: 0, session: 0 });
    service.passDays(1);
    expect(await purge(service)).toMatchObject({ customer: 2, session: 2 });
    expect(await storedIds()).toEqual([ofBackend, ...remainingIds].sort());
    expect(await service.rowsOf(Browser).count()).toBe(1);
    expect((await active.visit({}, GROUP)).body.entity_id).toBe(remainingIds[1]);
    const later = bearer(await issueAgentToken(service));
    expect((await service.post(TOKEN, agentTokenBody({ entity_id: ofBackend }), later)).status).toBe(200);
    const returning = await idle.visit();
    expect(returning.status).toBe(200);
    expect(deletedIds).not.toContain(returning.body.entity_id);
  });

  it('purges at most 100 sessions in a transaction, even if active ones are between them', async () => {
    const day = Math.floor(service.clock.now() / 1000 / DAY_SECONDS);
    const created = service.clock.now() - 800 * DAY_SECONDS * 1000;
    const isActive = (index: number) => index % 5 === 0;
    for (let first = 0; first < 1_500; first += 500) {
      const rows = Array.from({ length: 500 }, (_, at) => ({
        id: uuidv7(created + first + at),
        isActive: isActive(at),
      }));
      await service.rowsOf(Browser).insert(rows.map(({ id }) => ({ browserId: id, secretHash: id, version: 0 })));
      const scope = { organizationId: ACME, groupId: '' };
      const customer = { ...scope, creator: 'browser', generation: created, version: 0, hasUser: false } as const;
      await identitiesOf(service).insert(
        rows.map(({ id }) => ({ ...customer, entityId: id, seenDay: day - 800, createdAt: new Date(created) })),
      );
      await service.rowsOf(Session).insert(rows.map((row) => sessionOf(row.id, row.isActive ? day - 1 : day - 800)));
    }
    const steps: number[] = [];
    const purging = service.application.get(SessionPurge).deleteInSteps(1_000, new Date(service.clock.now()));
    for await (const deleted of purging) steps.push(deleted);
    expect(Math.max(...steps)).toBe(100);
    expect(steps.reduce((sum, deleted) => sum + deleted, 0)).toBe(1_200);
    expect(
      await Promise.all([Browser, Session].map((entity) => service.rowsOf(entity as typeof Session).count())),
    ).toEqual([300, 300]);
    expect(await purge(service)).toMatchObject({ session: 0, customer: 1_200 });
  });

  it.each([
    ['before', 'the browser stays'],
    ['after', 'the visit gets a new browser'],
  ] as const)('allows a visit right %s it removes the secret of the browser: %s', async (moment, _then) => {
    const browser = new TestBrowser(service);
    const first = await browser.visit();
    service.passDays(740);
    let visited = '';
    const visit = async () => {
      visited = (await browser.visit()).body.entity_id;
    };
    const steps = service.application.get(SessionPurge).deleteInSteps(50, new Date(service.clock.now()));
    atNextTransaction(service, moment, visit);
    for await (const _step of steps);
    const isLeft = moment === 'before';
    expect((await sessionsOfBrowser(service, first)).length).toBe(isLeft ? 1 : 0);
    expect(visited).not.toBe(first.body.entity_id);
    expect((await browser.visit()).body.entity_id).toBe(visited);
    await expectNoOrphans(service);
  });

  it('continues with a browser of which an earlier purge deleted a part of the sessions', async () => {
    const browser = new TestBrowser(service);
    const first = await browser.visit();
    const { entity_id: entityId } = first.body;
    const [session] = (await sessionsOfBrowser(service, first)) as [Session];
    const more = Array.from({ length: 249 }, (_, index) => ({
      ...session,
      id: `more-${index}`,
      groupId: `more-${index}`,
    }));
    for (let at = 0; at < more.length; at += 100) await service.rowsOf(Session).insert(more.slice(at, at + 100));
    service.passDays(740);
    for await (const deleted of service.application
      .get(SessionPurge)
      .deleteInSteps(1_000, new Date(service.clock.now())))
      if (deleted > 0) break;
    expect(await service.rowsOf(Session).count()).toBe(150);
    expect(await service.rowsOf(Browser).count(), 'it leads nowhere any more').toBe(0);
    expect(await purge(service)).toMatchObject({ session: 150, customer: 1 });
    const next = await browser.visit();
    expect([next.body.entity_id, browserPartOf(next)]).not.toContain(entityId);
    expect(browserPartOf(next)).not.toBe(browserPartOf(first));
    await expectNoOrphans(service);
  });

  it('purges the browsers without sessions in steps', async () => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    const ids = Array.from({ length: 4 }, (_, index) => uuidv7(service.clock.now() + 1_000 + index));
    await service.rowsOf(Browser).insert(ids.map((browserId) => ({ browserId, secretHash: browserId, version: 0 })));
    const left: number[] = [];
    for await (const _step of service.application.get(SessionPurge).deleteUnusedBrowsers(2))
      left.push(await service.rowsOf(Browser).count());
    expect(left).toEqual([4, 2, 1]);
    expect((await browser.visit()).body.entity_id).toBe(entity_id);
  });

  it.each([
    ['before', 'mustRetain', 0],
    ['after', 'onErase', 1],
  ] as const)('and an erasure right %s it purges a customer leave no data of it', async (_, hook, purged) => {
    const { entity_id: entityId } = await newCustomer(service);
    service.passDays(740);
    const statuses: number[] = [];
    vi.spyOn(service.application.get(CustomerDataParticipants), hook).mockImplementationOnce(async () => {
      const erased = await service.erase(entityId);
      statuses.push(erased.status);
      return [];
    });
    expect((await purge(service))?.customer).toBe(purged);
    expect(statuses).toEqual([200]);
    expect(await identitiesOf(service).existsBy({ entityId })).toBe(false);
    await expectNoOrphans(service);
  });
});

describe('several processes that purge', () => {
  // No test below sends a bearer token: the service that was started last in a process verifies all of them.
  it('run one at a time: the second returns without a result', async () => {
    await insertRows(Ended, 2_500, new Date(service.clock.now() - 1_000));
    const other = await serviceOfTest({ database: service.database });
    const done = await Promise.all([purge(service), purge(other)]);
    expect(done.filter((purged) => purged === undefined)).toHaveLength(1);
    expect(done.find((purged) => purged !== undefined)?.ended).toBe(2_500);
    expect(await purge(other)).toEqual(NO_ROWS);
    expect(await purge(service)).toEqual(NO_ROWS);
  });

  it('stop after the current batch when they lose the lease', async () => {
    await insertRows(Ended, 2_500, new Date(service.clock.now() - 1_000));
    const newLease = loseLeaseAfter(/^\s*DELETE FROM ended/);
    await insertRows(ProofUse, 1, new Date(service.clock.now() - 1_000));
    expect((await purge(service))?.ended).toBe(1_000);
    expect(await service.rowsOf(ProofUse).count(), 'other tables stay').toBe(1);
    expect(await purge(service)).toBeUndefined();
    await releaseLease(dataSource.manager, newLease);
  });

  it('print what they deleted, and wait a minute for another process, which may have died during its purge', async () => {
    await insertRows(Ended, 1_200, new Date(service.clock.now() - 1_000));
    const other: Lease = { name: 'purge', owner: 'a process that has died' };
    await acquireLease(dataSource.manager, other);
    service.clock.advance({ seconds: 61 }); // the clock of this process, which may differ from that of others
    await expect(runCommand(service, 'purge')).rejects.toThrow('another process is purging');
    expect(await service.rowsOf(Ended).count()).toBe(1_200);
    for (const seconds of [50, -50]) {
      await setLeaseAge(seconds);
      await expect(runCommand(service, 'purge')).rejects.toThrow('another process is purging');
    }
    await setLeaseAge(61);
    const printed = Object.entries({ ...NO_ROWS, ended: 1_200 }).map(([table, rows]) => `${table}: ${rows}`);
    expect((await runCommand(service, 'purge')).trimEnd().split('\n').sort()).toEqual(printed.sort());
    await acquireLease(dataSource.manager, other);
    await setLeaseAge(-61); // the clock of the database has gone back
    expect(await runCommand(service, 'purge')).toContain('ended: 0');
    await expect(runCommand(service, 'purge', 'more')).rejects.toThrow();
  });
});

/** Inserts rows with arbitrary values and this expiry. */
async function insertRows(entity: EntityTarget<ObjectLiteral>, count: number, expires: Date): Promise<void> {
  const { metadata } = dataSource.getRepository(entity);
  for (let at = 0; at < count; at += 500) {
    const rows = Array.from({ length: Math.min(500, count - at) }, () => rowOf(metadata, expires));
    await dataSource.getRepository(entity).insert(rows);
  }
}

function rowOf({ columns }: EntityMetadata, expires: Date): ObjectLiteral {
  const values = columns
    .filter(({ isNullable, propertyName }) => !isNullable || propertyName === 'expiresAt')
    .map(({ propertyName, type, length }) => {
      if (propertyName === 'expiresAt') return [propertyName, expires];
      if (type === 'datetime') return [propertyName, new Date(0)];
      if (['int', 'integer'].includes(String(type))) return [propertyName, randomInt(1, 2 ** 31)];
      return [
        propertyName,
        randomBytes(32)
          .toString('hex')
          .slice(0, Number(length || 64)),
      ];
    });
  return Object.fromEntries(values);
}

/** The session of a browser with a customer of ACME, which have the same id. */
function sessionOf(id: string, seenDay: number) {
  const expiresAt = new Date((seenDay + 732) * DAY_SECONDS * 1000);
  return {
    ...({ id, kind: 'own', customerId: id, browserId: id, organizationId: ACME, groupId: '' } as const),
    ...{ depth: 0, epoch: 0, seenDay, createdAt: new Date(0), expiresAt },
  };
}

async function storedIds(): Promise<string[]> {
  return (await identitiesOf(service).find()).map(({ entityId }) => entityId).sort();
}

/** Reports the number of rows that each matching statement has changed, after its transaction. */
function onStatement(pattern: RegExp, report: (changed: number, match: RegExpExecArray) => unknown): void {
  const transaction = database.transaction.bind(database);
  const run: Database['transaction'] = async (work, ...more) => {
    const changes: [changed: number, match: RegExpExecArray][] = [];
    const act = async (sql: string, send: () => Promise<unknown>) => {
      const result = await send();
      const match = pattern.exec(sql);
      if (match) changes.push([(result as QueryResult).affected ?? 0, match]);
      return result;
    };
    const result = await transaction((manager) => work(intercepted(manager, act)), ...more);
    for (const change of changes) await report(...change);
    return result;
  };
  vi.spyOn(database, 'transaction').mockImplementation(run as never);
}

const freeLease = () => dataSource.query("UPDATE lease SET owner = '' WHERE name = 'purge'");

/** As if the process that has the lease of a purge had acquired it this long ago. */
async function setLeaseAge(seconds: number): Promise<void> {
  const acquiredAt = asStored(new Date(Date.now() - seconds * 1_000));
  await dataSource.query("UPDATE lease SET acquired_at = ? WHERE name = 'purge'", [acquiredAt]);
}

/** Gives the lease of a purge to another process after the first statement that matches. */
function loseLeaseAfter(pattern: RegExp): Lease {
  const newLease: Lease = { name: 'purge', owner: 'another process' };
  let isLost = false;
  onStatement(pattern, async () => {
    if (isLost) return;
    isLost = true;
    await freeLease();
    await acquireLease(dataSource.manager, newLease);
  });
  return newLease;
}
