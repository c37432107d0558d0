import { randomBytes, randomInt } from 'node:crypto';
import { DataSource, type EntityMetadata, type EntityTarget, type ObjectLiteral } from 'typeorm';
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { RecordedValue } from '../../../src/access-token/recorded-values.js';
import { Revocation } from '../../../src/access-token/revocation.entity.js';
import { UsedAssertion } from '../../../src/grants/jwt-bearer/used-assertions.js';
import { BrowserLink, KnownBrowser } from '../../../src/identity/browser-link.entity.js';
import { CustomerDataParticipants } from '../../../src/identity/customer-data-participants.js';
import { CustomerIdentity } from '../../../src/identity/customer-identity.entity.js';
import { IdleBrowsers } from '../../../src/identity/idle-browsers.js';
import { OneTimeCode } from '../../../src/one-time-code/one-time-code.entity.js';
import { Database } from '../../../src/platform/database/database.js';
import { acquireLease, type Lease, releaseLease } from '../../../src/platform/database/lease.js';
import { uuidv7 } from '../../../src/platform/uuid.js';
import type { Purged } from '../../../src/purge/purge.js';
import { RefreshFamily } from '../../../src/refresh-token/refresh-family.entity.js';
import { RegistryChange } from '../../../src/registry/registry-change.entity.js';
import { agentTokenBody, claimsOf, refresh } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { expectNoOrphans, identitiesOf, linksOfBrowser } from '../../support/identities.js';
import { issueAgentToken, purge } from '../../support/operator-commands.js';
import { environmentOf, runCli } from '../../support/processes.js';
import { sqlOf } from '../../support/statements.js';
import { ACME } from '../../support/test-registry.js';
import { agentTokenPair, codesOf, infoStatus, newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { serviceOfTest, useService } from '../../support/use-service.js';

const DAY_SECONDS = 86_400;
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
  await dataSource.getRepository(RecordedValue).delete({ name: 'idle_customers_purged_day' });
  // A failed test can leave its lease.
  await dataSource.query("UPDATE lease SET leased_until = '0' WHERE name = 'purge'");
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

  it('deletes a transfer token when it expires, whether it was used or not', async () => {
    const { access_token } = await newCustomer(service);
    const [used, unused] = [await transferToken(service, access_token), await transferToken(service, access_token)];
    expect((await redeem(service, used)).status).toBe(200);
    expect(await purge(service)).toEqual(NO_ROWS);
    expect((await redeem(service, unused)).status).toBe(200);
    service.clock.advance({ seconds: 3_601 });
    expect(await purge(service)).toEqual({ ...NO_ROWS, one_time_code: 2 });
    expect((await redeem(service, used)).status).toBe(400);
  });

  it('deletes a refresh family when it was unused for its lifetime', async () => {
    const first = await agentTokenPair(service);
    service.clock.advance({ seconds: 29 * DAY_SECONDS });
    const second = (await refresh(service, first.refresh_token)).body;
    service.clock.advance({ seconds: 2 * DAY_SECONDS });
    await purge(service);
    expect(await dataSource.getRepository(RefreshFamily).count()).toBe(1);
    expect((await refresh(service, second.refresh_token)).status).toBe(200);
    service.clock.advance({ seconds: 31 * DAY_SECONDS });
    await purge(service);
    expect(await dataSource.getRepository(RefreshFamily).count()).toBe(0);
  });

  it('deletes a revocation only after the longest lifetime of a token has passed', async () => {
    const { access_token } = await newCustomer(service);
    const { exp } = claimsOf(access_token) as { exp: number };
    expect((await service.send('DELETE', TOKEN, bearer(access_token))).status).toBe(200);
    const longest = exp - 28_800 + 86_400;
    for (const left of [86_000, 57_600, 5]) {
      service.clock.advance({ seconds: longest - left - service.clock.seconds() });
      expect(await purge(service)).toEqual(NO_ROWS);
      expect(await infoStatus(service, access_token)).toBe(401);
    }
    service.clock.advance({ seconds: 5 + 120 + 1 });
    expect(await purge(service)).toEqual({ ...NO_ROWS, revocation: 1 });
    expect(await infoStatus(service, access_token)).toBe(401);
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
    await service.admin('DELETE', `/admin/identities/${entity_id}`);
    await dataSource.getRepository(Revocation).clear();

    service.clock.advance({ seconds: 730 * DAY_SECONDS });
    expect((await active.visit()).body.entity_id).toBe(remainingIds[0]);
    expect((await active.visit({}, GROUP)).body.entity_id).toBe(remainingIds[1]);
    expect(await purge(service)).toMatchObject({ customer: 0, browser: 0 });
    service.clock.advance({ seconds: 2 * DAY_SECONDS });
    expect(await purge(service)).toMatchObject({ customer: 2, browser: 2 });
    service.clock.advance({ seconds: 3 * DAY_SECONDS });
    await purge(service);
    // the erased customer has a generation, which is never purged (protocol §3.12)
    expect(await storedIds()).toEqual([ofBackend, entity_id, ...remainingIds].sort());
    expect((await active.visit({}, GROUP)).body.entity_id).toBe(remainingIds[1]);
    const again = await service.post(
      TOKEN,
      agentTokenBody({ entity_id: ofBackend }),
      bearer(await issueAgentToken(service)),
    );
    expect(again.status).toBe(200);
    const returning = await idle.visit();
    expect(returning.status).toBe(200);
    expect(deletedIds).not.toContain(returning.body.entity_id);
  });

  it('keeps a browser until the last day of its cookies, on which it is still recognized', async () => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    service.clock.advance({ seconds: 730 * DAY_SECONDS - 60 });
    expect(await purge(service)).toMatchObject({ customer: 0, browser: 0 });
    expect((await browser.visit()).body.entity_id).toBe(entity_id);
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
    }
    const sizes: number[] = [];
    onStatement(/^\s*DELETE FROM browser/, (deleted) => sizes.push(deleted));
    expect((await purge(service))?.browser).toBe(idle.length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
    expect(await dataSource.getRepository(KnownBrowser).count()).toBe(500);
    expect(await dataSource.getRepository(BrowserLink).count()).toBe(500);
    expect((await purge(service))?.browser).toBe(0);
  });

  it.each([
    ['before', 'the browser stays'],
    ['after', 'the visit gets a new browser'],
  ] as const)('allows a visit right %s it removes the secret of the browser: %s', async (moment, _then) => {
    const browser = new TestBrowser(service);
    const first = await browser.visit();
    service.clock.advance({ seconds: 740 * DAY_SECONDS });
    const transaction = database.transaction.bind(database);
    let visited = '';
    const visit = async () => {
      visited = (await browser.visit()).body.entity_id;
    };
    const steps = service.application.get(IdleBrowsers).deleteInSteps(50);
    await steps.next();
    vi.spyOn(database, 'transaction').mockImplementationOnce(async (work) => {
      vi.restoreAllMocks();
      if (moment === 'before') await visit();
      const result = await transaction(work);
      if (moment === 'after') await visit();
      return result as never;
    });
    for await (const _step of steps);
    const isLeft = moment === 'before';
    const [link] = await linksOfBrowser(service, first);
    expect(link !== undefined).toBe(isLeft);
    expect(visited).not.toBe(first.body.entity_id);
    expect((await browser.visit()).body.entity_id).toBe(visited);
    await expectNoOrphans(service);
  });

  it('leaves every browser a valid customer when many browsers return at the same time', async () => {
    const browsers = Array.from({ length: 40 }, () => new TestBrowser(service));
    for (const browser of browsers) {
      await browser.visit();
      await browser.visit({}, GROUP);
    }
    service.clock.advance({ seconds: 740 * DAY_SECONDS });
    const purging = purge(service);
    const visits = await Promise.all(browsers.map((browser) => browser.visit()));
    await purging;
    for (const [index, { status, body }] of visits.entries()) {
      expect(status).toBe(200);
      expect((await browsers[index]?.visit())?.body.entity_id).toBe(body.entity_id);
      expect(await infoStatus(service, body.access_token)).toBe(200);
    }
    await expectNoOrphans(service);
  });

  it('deletes the links of a browser with 5,000 customers by statements of at most 1,000 rows', async () => {
    await idleBrowserWithLinks(5_000);
    const sizes: number[] = [];
    onStatement(/^\s*DELETE FROM browser_customer/, (deleted) => sizes.push(deleted));
    expect((await purge(service))?.browser).toBe(1);
    expect(sizes).toEqual([1_000, 1_000, 1_000, 1_000, 1_000, 1]);
    await expectNoOrphans(service);
  });

  it('ends the idle links of a browser by statements that name at most 64, and none that has ended before', async () => {
    const links = dataSource.getRepository(BrowserLink);
    await idleBrowserWithLinks(300);
    const [first] = (await links.findBy({ organizationId: ACME })) as [BrowserLink];
    const live = Array.from({ length: 1_100 }, (_, index) => ({
      ...first,
      entityId: `1-customer-${index}`,
      groupId: `g-${index}`,
    }));
    for (let at = 0; at < live.length; at += 500) await links.insert(live.slice(at, at + 500));
    const log = vi.spyOn(dataSource.logger, 'logQuery');
    expect((await purge(service))?.browser).toBe(1);
    const updates = log.mock.calls.filter(([sql]) => /^\s*UPDATE browser_customer/.test(sql));
    log.mockRestore();
    const named = updates.map(([, parameters = []]) =>
      (parameters as unknown[]).filter((_value, index) => index % 2 === 1),
    );
    expect(Math.max(...named.map(({ length }) => length))).toBeLessThanOrEqual(64);
    const ids = [first, ...live].map(({ entityId }) => entityId);
    expect(new Set(named.flat())).toEqual(new Set(ids));
    await expectNoOrphans(service);
  });

  it('continues with a browser of which an earlier purge deleted a part, and which is not recognized meanwhile', async () => {
    const [browser, entityId] = await idleBrowserWithLinks(2_500);
    const links = dataSource.getRepository(BrowserLink);
    const other = loseLeaseAfter(/^\s*DELETE FROM browser_customer/);
    expect((await purge(service))?.browser).toBe(0);
    await releaseLease(dataSource.manager, other);
    expect(await links.count()).toBe(1_501);
    expect((await browser.visit()).body.entity_id).not.toBe(entityId);
    expect((await purge(service))?.browser).toBe(1);
    expect(await links.count()).toBe(1);
    await expectNoOrphans(service);
  });

  it('ends only the idle link of a customer to which an active browser leads too', async () => {
    const first = await new TestBrowser(service).visit();
    const active = new TestBrowser(service);
    const { browserId } = (await linksOfBrowser(service, await active.visit()))[0] as BrowserLink;
    const { entity_id: entityId } = first.body;
    service.clock.advance({ seconds: 740 * DAY_SECONDS });
    const today = Math.floor(service.clock.now() / 1000 / DAY_SECONDS);
    const links = dataSource.getRepository(BrowserLink);
    await links.insert({ ...linkOf(browserId, entityId, today - 730), groupId: 'sales' });
    await links.update({ browserId }, { seenDay: today - 730 });
    expect(await purge(service)).toMatchObject({ customer: 0, browser: 1 });
    expect(await linksOfBrowser(service, first)).toEqual([]);
    expect((await active.visit({}, GROUP)).body.entity_id).toBe(entityId);
    await expectNoOrphans(service);
  });

  it.each([
    ['before', 'mustRetain', 200, 1],
    ['after', 'onErase', 404, 0],
  ] as const)(
    'and an erasure right %s it purges a customer leave no data of it',
    async (_, hook, status, generation) => {
      const { entity_id: entityId } = await newCustomer(service);
      service.clock.advance({ seconds: 740 * DAY_SECONDS });
      const statuses: number[] = [];
      vi.spyOn(service.application.get(CustomerDataParticipants), hook).mockImplementationOnce(async () => {
        const erased = await service.admin('DELETE', `/admin/identities/${entityId}`);
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

  it('wait a minute for a process that died during its purge', async () => {
    const abandonedLease: Lease = { name: 'purge', owner: 'a process that has died' };
    await acquireLease(dataSource.manager, abandonedLease, service.clock.now(), 60_000);
    await insertRows(OneTimeCode, 1, new Date(service.clock.now() - 1_000));
    expect(await purge(service)).toBeUndefined();
    expect(await codesOf(service).count()).toBe(1);
    service.clock.advance({ seconds: 61 });
    expect(await purge(service)).toEqual({ ...NO_ROWS, one_time_code: 1 });
  });

  it('stop after the current batch when they lose the lease', async () => {
    await insertRows(OneTimeCode, 2_500, new Date(service.clock.now() - 1_000));
    const newLease = loseLeaseAfter(/^\s*DELETE FROM one_time_code/);
    await insertRows(Revocation, 1, new Date(service.clock.now() - 1_000));
    expect((await purge(service))?.one_time_code).toBe(1_000);
    expect(await dataSource.getRepository(Revocation).count(), 'other tables stay').toBe(1);
    expect(await purge(service)).toBeUndefined();
    await releaseLease(dataSource.manager, newLease);
  });

  it('print what they deleted in dist/cli.js purge, and exit with 1 while another process purges', async () => {
    await insertRows(OneTimeCode, 1_200, new Date(service.clock.now() - 1_000));
    await insertRows(Revocation, 2, new Date(service.clock.now() + 600_000));
    const environment = { ...environmentOf(service.database), LOG_LEVEL: 'error' };
    const first = await runCli(['purge'], environment);
    expect(first).toMatchObject({ code: 0, stderr: '' });
    const printed = Object.entries({ ...NO_ROWS, one_time_code: 1_200 }).map(([table, rows]) => `${table}: ${rows}`);
    expect(first.stdout.trimEnd().split('\n').sort()).toEqual(printed.sort());

    const other: Lease = { name: 'purge', owner: 'another process' };
    await acquireLease(dataSource.manager, other, Date.now(), 60_000);
    const second = await runCli(['purge'], environment);
    expect(second).toMatchObject({ code: 1, stdout: '', stderr: 'another process is purging\n' });
    await releaseLease(dataSource.manager, other);
    expect(await runCli(['purge', 'more'], environment)).toMatchObject({ code: 2, stdout: '' });
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
function onStatement(pattern: RegExp, report: (changed: number, match: RegExpExecArray) => void): void {
  const execute = database.execute.bind(database);
  vi.spyOn(database, 'execute').mockImplementation(async (statement, parameters) => {
    const changed = await execute(statement, parameters);
    const match = pattern.exec(sqlOf(database, statement));
    if (match) report(changed, match);
    return changed;
  });
}

/** Gives the lease of a purge to another process after the first statement that matches. */
function loseLeaseAfter(pattern: RegExp): Lease {
  const newLease: Lease = { name: 'purge', owner: 'another process' };
  const execute = database.execute.bind(database);
  let isLost = false;
  vi.spyOn(database, 'execute').mockImplementation(async (statement, parameters) => {
    const changed = await execute(statement, parameters);
    if (isLost || !pattern.test(sqlOf(database, statement))) return changed;
    isLost = true;
    await dataSource.query("UPDATE lease SET leased_until = '0' WHERE name = 'purge'");
    await acquireLease(dataSource.manager, newLease, service.clock.now(), 60_000);
    return changed;
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
  for (let at = 0; at < count; at += 500) await dataSource.getRepository(BrowserLink).insert(links.slice(at, at + 500));
  service.clock.advance({ seconds: 740 * DAY_SECONDS });
  return [browser, first.body.entity_id];
}
