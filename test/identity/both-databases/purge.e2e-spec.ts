import { randomBytes, randomInt } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { DataSource, type EntityMetadata, type EntityTarget, In, IsNull, Not, type ObjectLiteral } from 'typeorm';
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { RecordedValue } from '../../../src/access-token/recorded-values.js';
import { Revocation } from '../../../src/access-token/revocation.entity.js';
import { UsedAssertion } from '../../../src/grants/jwt-bearer/used-assertions.js';
import { BrowserLink, KnownBrowser } from '../../../src/identity/browser-link.entity.js';
import { BrowserPurge } from '../../../src/identity/browser-purge.js';
import { CustomerDataParticipants } from '../../../src/identity/customer-data-participants.js';
import { CustomerIdentity } from '../../../src/identity/customer-identity.entity.js';
import { OneTimeCode } from '../../../src/one-time-code/one-time-code.entity.js';
import { Database } from '../../../src/platform/database/database.js';
import { acquireLease, type Lease, releaseLease } from '../../../src/platform/database/lease.js';
import { asStored } from '../../../src/platform/database/sqlite-statements.js';
import { uuidv7 } from '../../../src/platform/uuid.js';
import { type Purged } from '../../../src/purge/purge.js';
import { CustomerFamilies } from '../../../src/refresh-token/customer-families.js';
import { RefreshFamily } from '../../../src/refresh-token/refresh-family.entity.js';
import { RegistryChange } from '../../../src/registry/registry-change.entity.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { atNextTransaction } from '../../support/dying-transactions.js';
import { expectNoOrphans, identitiesOf, linksOfBrowser } from '../../support/identities.js';
import { issueAgentToken, purge, runCommand } from '../../support/operator-commands.js';
import { sqlOf } from '../../support/statements.js';
import { ACME } from '../../support/test-registry.js';
import { codesOf, newCustomer } from '../../support/transfers.js';
import { DAY_SECONDS, serviceOfTest, useService } from '../../support/use-service.js';

const GROUP = `/v2/customer/${ACME}/sales/token`;
const EXPIRING = [OneTimeCode, RefreshFamily, Revocation, UsedAssertion, RegistryChange] as const;
/** The result of a purge that has deleted this number of rows from each of these tables. */
const purgedRows = (rows: number): Purged => ({
  ...{ one_time_code: rows, refresh_family: rows, revocation: rows, used_assertion: rows },
  registry_change: rows,
  browser_customer: 0,
  customer: 0,
  browser: 0,
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
  for (const entity of [...EXPIRING, CustomerIdentity, KnownBrowser, BrowserLink])
    await dataSource.getRepository(entity).clear();
  await service.rowsOf(RecordedValue).delete({ name: In(['idle_customers_purged_day', 'idle_browsers_purged_day']) });
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
    const { customer: _, browser: __, browser_customer: ___, refresh_family: ____, ...tables } = NO_ROWS;
    for (const table of Object.keys(tables)) expect(sizes[table]).toEqual([1_000, 1]);
  });
});

describe('a table that cannot be purged', () => {
  const error = new Error('an error of the database');
  const countOf = (entity: EntityTarget<ObjectLiteral>) => dataSource.getRepository(entity).count();

  it('does not stop the purge of the others: the log and the error of the command name the table', async () => {
    await new TestBrowser(service).visit();
    service.passDays(740);
    for (const entity of EXPIRING) await insertRows(entity, 1, new Date(service.clock.now() - 1_000));
    const execute = database.execute.bind(database);
    vi.spyOn(database, 'execute').mockImplementation(async (statement, parameters) => {
      if (sqlOf(database, statement).includes('DELETE FROM one_time_code')) throw error;
      return execute(statement, parameters);
    });
    const warn = vi.spyOn(Logger.prototype, 'warn');
    await expect(runCommand(service, 'purge')).rejects.toThrow(
      /^tables that cannot be purged: one_time_code; purged: \{.*"customer":1/,
    );
    expect(warn.mock.calls.join()).toMatch(/one_time_code.*an error of the database/);
    const counts = await Promise.all([...EXPIRING, KnownBrowser].map(countOf));
    expect(counts).toEqual([1, 0, 0, 0, 0, 0]);
    expect(await identitiesOf(service).countBy({ createdAt: Not(IsNull()) })).toBe(0);
    vi.restoreAllMocks();
    expect((await purge(service))?.one_time_code).toBe(1);
  });

  const stepsOf = {
    browser_customer: () => vi.spyOn(service.application.get(BrowserPurge), 'endRevokedInSteps'),
    refresh_family: () => vi.spyOn(service.application.get(CustomerFamilies), 'deleteInSteps'),
  };

  it.each([
    ['browser links', 'browser_customer'],
    ['refresh families', 'refresh_family'],
  ] as const)('leaves the revocations to the next purge if it has %s, which they end', async (_, table) => {
    for (const entity of EXPIRING) await insertRows(entity, 1, new Date(service.clock.now() - 1_000));
    stepsOf[table]().mockImplementation(
      // biome-ignore lint/correctness/useYield: the first step fails
      async function* () {
        throw error;
      },
    );
    await expect(runCommand(service, 'purge')).rejects.toThrow(`tables that cannot be purged: ${table}`);
    expect(await countOf(Revocation)).toBe(1);
    expect(await countOf(RefreshFamily)).toBe(table === 'refresh_family' ? 1 : 0);
    expect(await countOf(UsedAssertion)).toBe(0);
    vi.restoreAllMocks();
    expect((await purge(service))?.revocation).toBe(1);
  });

  it('ends the purge if the database is unreachable, with one warning', async () => {
    stepsOf.browser_customer().mockImplementation(
      // biome-ignore lint/correctness/useYield: the first step fails
      async function* () {
        vi.spyOn(database, 'transaction').mockRejectedValue(error);
        throw error;
      },
    );
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
    await service.rowsOf(Revocation).clear();

    service.passDays(730);
    expect((await active.visit()).body.entity_id).toBe(remainingIds[0]);
    expect((await active.visit({}, GROUP)).body.entity_id).toBe(remainingIds[1]);
    expect(await purge(service)).toMatchObject({ customer: 0, browser: 0 });
    service.passDays(2);
    expect(await purge(service)).toMatchObject({ customer: 2, browser: 2 });
    service.passDays(2);
    await purge(service);
    expect(await storedIds()).toEqual(expect.arrayContaining(deletedIds)); // a transfer token may still lead to them
    service.passDays(1);
    await purge(service);
    // the erased customer has a generation, which is never purged (protocol §3.12)
    expect(await storedIds()).toEqual([ofBackend, entity_id, ...remainingIds].sort());
    expect((await active.visit({}, GROUP)).body.entity_id).toBe(remainingIds[1]);
    const later = bearer(await issueAgentToken(service));
    expect((await service.post(TOKEN, agentTokenBody({ entity_id: ofBackend }), later)).status).toBe(200);
    const returning = await idle.visit();
    expect(returning.status).toBe(200);
    expect(deletedIds).not.toContain(returning.body.entity_id);
  });

  it('deletes at most 1,000 rows at a time, even if active browsers are between them', async () => {
    const today = Math.floor(service.clock.now() / 1000 / DAY_SECONDS);
    const old = service.clock.now() - 800 * DAY_SECONDS * 1000;
    const idle = Array.from({ length: 2_500 }, (_, index) => index).filter((index) => index % 5 !== 0);
    for (let index = 0; index < 2_500; index += 500) {
      const ids = Array.from({ length: 500 }, (_, at) => uuidv7(old + index + at));
      await dataSource
        .getRepository(KnownBrowser)
        .insert(ids.map((browserId) => ({ browserId, secretHash: browserId, version: 0 })));
      await dataSource
        .getRepository(BrowserLink)
        .insert(ids.map((id, at) => linkOf(id, id, today - (at % 5 === 0 ? 1 : 800))));
      const customer = { organizationId: ACME, groupId: '', generation: 0, linkGeneration: 0, version: 0 };
      await identitiesOf(service).insert(ids.map((entityId) => ({ ...customer, entityId })));
    }
    const sizes: number[] = [];
    onStatement(/^\s*DELETE FROM browser/, (deleted) => sizes.push(deleted));
    expect((await purge(service))?.browser).toBe(idle.length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
    expect(await service.rowsOf(KnownBrowser).count()).toBe(500);
    expect(await service.rowsOf(BrowserLink).count()).toBe(500);
    expect((await purge(service))?.browser).toBe(0);
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
    const steps = service.application.get(BrowserPurge).deleteIdleInSteps(50, new Date(service.clock.now()));
    await steps.next();
    atNextTransaction(service, moment, visit);
    for await (const _step of steps);
    const isLeft = moment === 'before';
    const [link] = await linksOfBrowser(service, first);
    expect(link !== undefined).toBe(isLeft);
    expect(visited).not.toBe(first.body.entity_id);
    expect((await browser.visit()).body.entity_id).toBe(visited);
    await expectNoOrphans(service);
  });

  it('continues with a browser of which an earlier purge deleted a part, and which is not recognized meanwhile', async () => {
    const [browser, entityId] = await idleBrowserWithLinks(2_500);
    const links = service.rowsOf(BrowserLink);
    const other = loseLeaseAfter(/^\s*DELETE FROM browser_customer/);
    expect((await purge(service))?.browser).toBe(0);
    await releaseLease(dataSource.manager, other);
    expect(await links.count()).toBe(1_501);
    expect((await browser.visit()).body.entity_id).not.toBe(entityId);
    expect((await purge(service))?.browser).toBe(1);
    expect(await links.count()).toBe(1);
    await expectNoOrphans(service);
  });

  it.each([
    ['before', 'mustRetain', 200, 1],
    ['after', 'onErase', 404, 0],
  ] as const)(
    'and an erasure right %s it purges a customer leave no data of it',
    async (_, hook, status, generation) => {
      const { entity_id: entityId } = await newCustomer(service);
      service.passDays(740);
      const statuses: number[] = [];
      vi.spyOn(service.application.get(CustomerDataParticipants), hook).mockImplementationOnce(async () => {
        const erased = await service.erase(entityId);
        statuses.push(erased.status);
        return [];
      });
      expect((await purge(service))?.customer).toBe(1 - generation);
      expect(statuses).toEqual([status]);
      expect(await identitiesOf(service).findOneByOrFail({ entityId })).toMatchObject({ generation, createdAt: null });
      await expectNoOrphans(service);
    },
  );
});

describe('several processes that purge', () => {
  // No test below sends a bearer token: the service that was started last in a process verifies all of them.
  it('run one at a time: the second returns without a result', async () => {
    await insertRows(OneTimeCode, 2_500, new Date(service.clock.now() - 1_000));
    const other = await serviceOfTest({ database: service.database });
    const done = await Promise.all([purge(service), purge(other)]);
    expect(done.filter((purged) => purged === undefined)).toHaveLength(1);
    expect(done.find((purged) => purged !== undefined)?.one_time_code).toBe(2_500);
    expect(await purge(other)).toEqual(NO_ROWS);
    expect(await purge(service)).toEqual(NO_ROWS);
  });

  it('stop after the current batch when they lose the lease', async () => {
    await insertRows(OneTimeCode, 2_500, new Date(service.clock.now() - 1_000));
    const newLease = loseLeaseAfter(/^\s*DELETE FROM one_time_code/);
    await insertRows(Revocation, 1, new Date(service.clock.now() - 1_000));
    expect((await purge(service))?.one_time_code).toBe(1_000);
    expect(await service.rowsOf(Revocation).count(), 'other tables stay').toBe(1);
    expect(await purge(service)).toBeUndefined();
    await releaseLease(dataSource.manager, newLease);
  });

  it('print what they deleted, and wait a minute for another process, which may have died during its purge', async () => {
    await insertRows(OneTimeCode, 1_200, new Date(service.clock.now() - 1_000));
    const other: Lease = { name: 'purge', owner: 'a process that has died' };
    await acquireLease(dataSource.manager, other);
    service.clock.advance({ seconds: 61 }); // the clock of this process, which may differ from that of others
    await expect(runCommand(service, 'purge')).rejects.toThrow('another process is purging');
    expect(await codesOf(service).count()).toBe(1_200);
    for (const seconds of [50, -50]) {
      await setLeaseAge(seconds);
      await expect(runCommand(service, 'purge')).rejects.toThrow('another process is purging');
    }
    await setLeaseAge(61);
    const printed = Object.entries({ ...NO_ROWS, one_time_code: 1_200 }).map(([table, rows]) => `${table}: ${rows}`);
    expect((await runCommand(service, 'purge')).trimEnd().split('\n').sort()).toEqual(printed.sort());
    await acquireLease(dataSource.manager, other);
    await setLeaseAge(-61); // the clock of the database has gone back
    expect(await runCommand(service, 'purge')).toContain('one_time_code: 0');
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
    .filter(({ isNullable }) => !isNullable)
    .map(({ propertyName, type, length }) => {
      if (propertyName === 'expiresAt') return [propertyName, expires];
      if (type === 'datetime') return [propertyName, new Date(0)];
      if (type === 'integer') return [propertyName, randomInt(1, 2 ** 31)];
      return [
        propertyName,
        randomBytes(32)
          .toString('hex')
          .slice(0, Number(length || 64)),
      ];
    });
  return Object.fromEntries(values);
}

/** A link of a browser to a customer of ACME. */
function linkOf(browserId: string, entityId: string, seenDay: number): Partial<BrowserLink> {
  const scope = { organizationId: ACME, groupId: '' };
  return { browserId, entityId, ...scope, origin: 'own', beganIn: browserId, generation: 0, seenDay };
}

async function storedIds(): Promise<string[]> {
  return (await identitiesOf(service).find()).map(({ entityId }) => entityId).sort();
}

/** Reports the number of rows that each matching statement has changed. */
function onStatement(pattern: RegExp, report: (changed: number, match: RegExpExecArray) => unknown): void {
  const execute = database.execute.bind(database);
  vi.spyOn(database, 'execute').mockImplementation(async (statement, parameters) => {
    const changed = await execute(statement, parameters);
    const match = pattern.exec(sqlOf(database, statement));
    if (match) await report(changed, match);
    return changed;
  });
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

/** A browser with a customer, whose id is returned too, and this number of further links, that is then idle. */
async function idleBrowserWithLinks(count: number): Promise<[browser: TestBrowser, entityId: string]> {
  const browser = new TestBrowser(service);
  const first = await browser.visit();
  const [link] = (await linksOfBrowser(service, first)) as [BrowserLink];
  const ended = { ...link, organizationId: null, groupId: null };
  const links = Array.from({ length: count }, (_, index) => ({ ...ended, entityId: `0-customer-${index}` }));
  for (let at = 0; at < count; at += 500) await service.rowsOf(BrowserLink).insert(links.slice(at, at + 500));
  service.passDays(740);
  return [browser, first.body.entity_id];
}
