import { randomBytes, randomInt } from 'node:crypto';
import { DataSource, type EntityMetadata, type EntityTarget, type ObjectLiteral } from 'typeorm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Revocation } from '../../src/access-token/revocation.entity.js';
import { UsedAssertion } from '../../src/grants/jwt-bearer/used-assertion.entity.js';
import { BrowserLink } from '../../src/identity/browser-link.entity.js';
import { CustomerDataParticipants } from '../../src/identity/customer-data-participants.js';
import { CustomerIdentity } from '../../src/identity/customer-identity.entity.js';
import { IdleBrowsers } from '../../src/identity/idle-browsers.js';
import { OneTimeCode } from '../../src/one-time-code/one-time-code.entity.js';
import { Database } from '../../src/platform/database/database.js';
import { acquireLease, type Lease, releaseLease } from '../../src/platform/database/lease.js';
import { uuidv7 } from '../../src/platform/uuid.js';
import type { Purged } from '../../src/purge/purge.js';
import { RefreshFamily } from '../../src/refresh-token/refresh-family.entity.js';
import { RefreshToken } from '../../src/refresh-token/refresh-token.entity.js';
import { RegistryChange } from '../../src/registry/changes/registry-change.entity.js';
import { agentTokenBody, claimsOf, refresh } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TestBrowser, TOKEN } from '../support/cookie-grant.js';
import { identitiesOf } from '../support/identities.js';
import { manage } from '../support/management-api.js';
import { issueAgentToken, purge } from '../support/operator-commands.js';
import { environmentOf, runCli } from '../support/processes.js';
import { sqlOf } from '../support/statements.js';
import { ACME, RIVAL } from '../support/test-registry.js';
import { startTestService, type TestResponse, type TestService } from '../support/test-service.js';
import { agentTokenPair, codesOf, infoStatus, newCustomer, redeem, transferToken } from '../support/transfers.js';

const DAY_SECONDS = 86_400;
const GROUP = `/v2/customer/${ACME}/sales/token`;
const ADMIN_TOKEN = 'admin-token-of-the-tests-0123456789';
const EXPIRING = [OneTimeCode, RefreshToken, RefreshFamily, Revocation, UsedAssertion, RegistryChange] as const;
/** The result of a purge that has deleted this number of rows from each of these tables. */
const purgedRows = (rows: number): Purged => ({
  ...{ one_time_code: rows, refresh_token: rows, refresh_family: rows, revocation: rows, used_assertion: rows },
  registry_change: rows,
  browser_link: 0,
  customer_identity: 0,
});
const NO_ROWS = purgedRows(0);

let service: TestService;
let dataSource: DataSource;
let database: Database;
beforeAll(async () => {
  service = await startTestService({ environment: { ADMIN_TOKEN } });
  dataSource = service.application.get(DataSource);
  database = service.application.get(Database);
});
beforeEach(async () => {
  for (const entity of [...EXPIRING, CustomerIdentity]) await dataSource.getRepository(entity).clear();
  // A failed test can leave its lease.
  await dataSource.query("UPDATE lease SET leased_until = '0' WHERE name = 'purge'");
});
afterEach(() => {
  vi.restoreAllMocks();
  service.clock.reset();
});
afterAll(() => service?.stop());

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
    for (const entity of EXPIRING) await insertRows(entity, 2_500, new Date(service.clock.now() - 1_000));
    onStatement(/^\s*DELETE FROM (\w+)/, (deleted, [, table = '']) => {
      sizes[table] ??= [];
      sizes[table].push(deleted);
    });
    expect(await purge(service)).toEqual(purgedRows(2_500));
    const { customer_identity: _, browser_link: __, ...tables } = NO_ROWS;
    for (const table of Object.keys(tables)) expect(sizes[table]).toEqual([1_000, 1_000, 500]);
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
    for (const entity of [RefreshFamily, RefreshToken]) expect(await dataSource.getRepository(entity).count()).toBe(0);
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
  it('deletes all customers of a browser whose cookies have expired, and no other customers', async () => {
    const idle = new TestBrowser(service);
    const erased = new TestBrowser(service);
    const active = new TestBrowser(service);
    const agent = await issueAgentToken(service);
    const { entity_id: ofBackend } = (await service.post(TOKEN, agentTokenBody(), bearer(agent))).body;
    const deletedIds = [(await idle.visit()).body.entity_id, (await idle.visit({}, GROUP)).body.entity_id];
    const remainingIds = [(await active.visit()).body.entity_id, (await active.visit({}, GROUP)).body.entity_id];
    const { entity_id } = (await erased.visit()).body;
    await manage(service, 'DELETE', `/admin/identities/${entity_id}`, bearer(ADMIN_TOKEN));
    await dataSource.getRepository(Revocation).clear();

    service.clock.advance({ seconds: 730 * DAY_SECONDS });
    expect((await active.visit()).body.entity_id).toBe(remainingIds[0]);
    expect((await active.visit({}, GROUP)).body.entity_id).toBe(remainingIds[1]);
    expect((await purge(service))?.customer_identity).toBe(0);
    service.clock.advance({ seconds: 2 * DAY_SECONDS });
    expect((await purge(service))?.customer_identity).toBe(2);
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

  it('keeps a browser until the last day of its cookies, on which it is still recognised', async () => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    service.clock.advance({ seconds: 730 * DAY_SECONDS - 60 });
    expect((await purge(service))?.customer_identity).toBe(0);
    expect((await browser.visit()).body.entity_id).toBe(entity_id);
  });

  it('lets participants delete their data of each customer, again after an error', async () => {
    const browser = new TestBrowser(service);
    const ids = [(await browser.visit()).body.entity_id, (await browser.visit({}, GROUP)).body.entity_id].sort();
    service.clock.advance({ seconds: 740 * DAY_SECONDS });
    const erasedIds: string[] = [];
    const onErase = vi.spyOn(service.application.get(CustomerDataParticipants), 'onErase');
    onErase.mockImplementation(async (id) => void erasedIds.push(id));
    onErase.mockRejectedValueOnce(new Error('an error of a participant'));
    const deleteAll = async () => {
      let deleted = 0;
      for await (const step of service.application.get(IdleBrowsers).deleteInSteps(50)) deleted += step;
      return deleted;
    };
    await expect(deleteAll()).rejects.toThrow('an error of a participant');
    expect(await storedIds()).toEqual(ids);
    expect(await deleteAll()).toBe(2);
    expect(erasedIds.sort()).toEqual(ids);
    expect(await storedIds()).toEqual([]);
  });

  it('deletes a customer whose only links are idle', async () => {
    const browser = new TestBrowser(service);
    const { entity_id: entityId } = (await browser.visit()).body;
    service.clock.advance({ seconds: 740 * DAY_SECONDS });
    const other = new TestBrowser(service);
    const { entity_id: browserId } = (await other.visit()).body;
    const scopeSeenDay = Math.floor(service.clock.now() / 1000 / DAY_SECONDS) - 735;
    const links = dataSource.getRepository(BrowserLink);
    await links.insert({ browserId, organizationId: RIVAL, groupId: '', entityId, generation: 0, scopeSeenDay });
    for await (const _step of service.application.get(IdleBrowsers).deleteInSteps(50));
    expect(await storedIds()).toEqual([browserId]);
    expect(await links.count()).toBe(0);
  });

  it('deletes at most 1,000 rows at a time, even if active browsers are between them', async () => {
    const today = Math.floor(service.clock.now() / 1000 / DAY_SECONDS);
    const old = service.clock.now() - 800 * DAY_SECONDS * 1000;
    const rows = Array.from({ length: 2_500 }, (_, index) => {
      const entityId = uuidv7(old + index);
      const kind = index % 5;
      const row = { entityId, organizationId: ACME, groupId: '', createdAt: new Date(old) };
      if (kind === 0) return { ...row, browserId: null, secretHash: null, lastSeenDay: null };
      const lastSeenDay = kind === 1 ? today - 1 : today - 800;
      return { ...row, browserId: entityId, secretHash: randomBytes(32).toString('hex'), lastSeenDay };
    });
    for (let at = 0; at < rows.length; at += 500) await identitiesOf(service).insert(rows.slice(at, at + 500));
    const sizes: number[] = [];
    onStatement(/^\s*DELETE FROM customer_identity/, (deleted) => sizes.push(deleted));
    expect(await purge(service)).toEqual({ ...NO_ROWS, customer_identity: 1_500 });
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
    expect(await identitiesOf(service).count()).toBe(1_000);
    expect(await purge(service)).toEqual(NO_ROWS);
  });

  it.each([
    ['before', 'the browser stays'],
    ['after', 'the browser gets a new customer'],
  ] as const)('allows a visit right %s it gives the browser up: %s', async (moment, _then) => {
    const browser = new TestBrowser(service);
    const first = (await browser.visit()).body.entity_id;
    const inGroup = (await browser.visit({}, GROUP)).body.entity_id;
    service.clock.advance({ seconds: 740 * DAY_SECONDS });
    let visited = '';
    const visit = async () => {
      visited = (await browser.visit()).body.entity_id;
    };
    hookStatements({ pattern: /SET secret_hash = /, [moment]: visit });
    const purged = (await purge(service))?.customer_identity;
    vi.restoreAllMocks();
    expect(purged).toBe(moment === 'before' ? 0 : 2);
    expect([first, inGroup]).not.toContain(visited);
    await expectNoOrphans();
    expect((await browser.visit()).body.entity_id).toBe(visited);
  });

  it.each([
    ['given up', /SET secret_hash = /],
    ['deleted', /^\s*DELETE FROM customer_identity/],
  ])('leads to a new customer for a browser that is %s right after it was recognised', async (_, pattern) => {
    const browser = new TestBrowser(service);
    const first = (await browser.visit()).body.entity_id;
    service.clock.advance({ seconds: 740 * DAY_SECONDS });
    const purged: Promise<unknown>[] = [];
    const [visit, visited] = signal<TestResponse>();
    const [stepped, step] = signal<void>();
    // The visit recognises the browser and then waits for a purge. The purge waits for the visit after its step.
    hookStatements(
      {
        pattern: /SET last_seen_day = /,
        before: async () => {
          purged.push(purge(service));
          await stepped;
        },
      },
      {
        pattern,
        after: async () => {
          step();
          await visit;
        },
      },
    );
    visited(await browser.visit({}, GROUP));
    await Promise.all(purged);
    vi.restoreAllMocks();
    const { status, body } = await visit;
    expect({ status, purges: purged.length }).toEqual({ status: 200, purges: 1 });
    expect(await storedIds()).toEqual([body.entity_id]);
    expect(body.entity_id).not.toBe(first);
    await expectNoOrphans();
    expect((await browser.visit({}, GROUP)).body.entity_id).toBe(body.entity_id);
  });

  it('leaves no customer without its browser when many browsers return at the same time', async () => {
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
    await expectNoOrphans();
  });
});

describe('an idle browser with 5,000 customers in groups', () => {
  const GROUP_COUNT = 5_000;
  let browser: TestBrowser;
  let browserId: string;
  let customers: string[];
  beforeEach(async () => {
    browser = new TestBrowser(service);
    browserId = (await browser.visit()).body.entity_id;
    customers = await insertGroups(browserId, GROUP_COUNT);
    service.clock.advance({ seconds: 740 * DAY_SECONDS });
  });

  it('is deleted by statements of at most 1,000 rows', async () => {
    const rows = countRows();
    expect(await purge(service)).toEqual({ ...NO_ROWS, customer_identity: GROUP_COUNT + 1 });
    expect(await storedIds()).toEqual([]);
    expect(Math.max(...rows)).toBe(1_000);
  });

  it('is deleted with others by statements of as many rows as the caller asks for', async () => {
    const idle = await insertBrowsers(120, 740);
    await insertGroups(idle[7] as string, 230);
    const active = await insertBrowsers(30, 1);
    await insertGroups(active[3] as string, 110);
    const rows = countRows();
    let deleted = 0;
    for await (const step of service.application.get(IdleBrowsers).deleteInSteps(50)) deleted += step;
    expect(deleted).toBe(1 + GROUP_COUNT + 120 + 230);
    expect(Math.max(...rows)).toBe(50);
    expect(await identitiesOf(service).count()).toBe(30 + 110);
    await expectNoOrphans();
  });

  it('is not recognised after a purge has deleted a part of it, and is deleted by the next purge', async () => {
    const newLease: Lease = { name: 'purge', owner: 'another process' };
    hookStatements({
      pattern: /^\s*DELETE FROM customer_identity/,
      after: async () => {
        await dataSource.query("UPDATE lease SET leased_until = '0' WHERE name = 'purge'");
        await acquireLease(dataSource.manager, newLease, service.clock.now(), 60_000);
      },
    });
    expect((await purge(service))?.customer_identity).toBe(1_000);
    await releaseLease(dataSource.manager, newLease);
    expect(await identitiesOf(service).count()).toBe(GROUP_COUNT + 1 - 1_000);
    const left = new Set(await storedIds());
    for (const shown of [browserId, customers.find((id) => left.has(id)) as string]) {
      const cookie = (browser.cookie as string).replace(browserId, shown);
      const { body } = await service.post(TOKEN, cookieBody(), { cookie });
      expect(left).not.toContain(body.entity_id);
    }
    expect((await purge(service))?.customer_identity).toBe(GROUP_COUNT + 1 - 1_000);
    expect(await identitiesOf(service).count()).toBe(2);
    await expectNoOrphans();
  });

  it.each([
    ['first', 0],
    ['middle', 2_500],
    ['last', GROUP_COUNT - 1],
  ])(
    'keeps all customers when the %s of them must stay, and participants get at most 500 ids at a time',
    async (_, index) => {
      const other = await insertBrowsers(3, 740);
      const participants = service.application.get(CustomerDataParticipants);
      const askedIds: string[] = [];
      vi.spyOn(participants, 'mustRetain').mockImplementation(async (ids) => {
        expect(ids.length).toBeLessThanOrEqual(500);
        askedIds.push(...ids);
        return ids.filter((id) => id === customers[index]);
      });
      expect((await purge(service))?.customer_identity).toBe(other.length);
      expect(await identitiesOf(service).count()).toBe(GROUP_COUNT + 1);
      expect(new Set(askedIds).size).toBe(askedIds.length);
      expect(askedIds).toEqual(expect.arrayContaining(other));
      await expectNoOrphans();
    },
  );

  it('is deleted even if customers in the middle of its groups were erased', async () => {
    const erased = customers.slice(1_000, 3_000);
    for (let at = 0; at < erased.length; at += 500) {
      const some = erased.slice(at, at + 500);
      await identitiesOf(service).update(some, { organizationId: null, groupId: null });
    }
    expect((await purge(service))?.customer_identity).toBe(GROUP_COUNT + 1);
    expect(await storedIds()).toEqual([]);
  });
});

describe('several processes that purge', () => {
  // No test below sends a bearer token: the service that was started last in a process verifies all of them.
  it('run one at a time: the second returns without a result', async () => {
    await insertRows(OneTimeCode, 2_500, new Date(service.clock.now() - 1_000));
    const other = await startTestService({ database: service.database });
    try {
      const done = await Promise.all([purge(service), purge(other)]);
      expect(done.filter((purged) => purged === undefined)).toHaveLength(1);
      expect(done.find((purged) => purged !== undefined)?.one_time_code).toBe(2_500);
      expect(await purge(other)).toEqual(NO_ROWS);
      expect(await purge(service)).toEqual(NO_ROWS);
    } finally {
      await other.stop();
    }
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
    const newLease: Lease = { name: 'purge', owner: 'another process' };
    hookStatements({
      pattern: /^\s*DELETE FROM one_time_code/,
      after: async () => {
        await dataSource.query("UPDATE lease SET leased_until = '0' WHERE name = 'purge'");
        await acquireLease(dataSource.manager, newLease, service.clock.now(), 60_000);
      },
    });
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

/** Inserts customers of a browser in groups of several organizations, in the order in which the purge reads them. */
async function insertGroups(browserId: string, count: number): Promise<string[]> {
  const now = service.clock.now();
  const rows = Array.from({ length: count }, (_, index) => {
    const organizationId = `${ACME.slice(0, -1)}${Math.floor((index * 4) / count)}`;
    const groupId = `group-${String(index).padStart(6, '0')}`;
    const common = { browserId, organizationId, groupId, secretHash: null, lastSeenDay: null };
    return { ...common, entityId: uuidv7(now + index), createdAt: new Date(now) };
  });
  for (let at = 0; at < count; at += 500) await identitiesOf(service).insert(rows.slice(at, at + 500));
  return rows.map(({ entityId }) => entityId);
}

/** Inserts browsers with one customer each that were last seen this number of days ago. */
async function insertBrowsers(count: number, days: number): Promise<string[]> {
  const seen = service.clock.now() - days * DAY_SECONDS * 1000;
  const rows = Array.from({ length: count }, (_, index) => {
    const entityId = uuidv7(service.clock.now() - 800 * DAY_SECONDS * 1000 + index);
    const common = { browserId: entityId, organizationId: ACME, groupId: '', createdAt: new Date(seen) };
    const secretHash = randomBytes(32).toString('hex');
    return { ...common, entityId, secretHash, lastSeenDay: Math.floor(seen / 1000 / DAY_SECONDS) };
  });
  await identitiesOf(service).insert(rows);
  return rows.map(({ entityId }) => entityId);
}

/** Collects the number of rows that each later statement on customers reads, changes or deletes. */
function countRows(): number[] {
  const rows: number[] = [];
  onStatement(/customer_identity/, (changed) => rows.push(changed));
  const select = database.select.bind(database);
  vi.spyOn(database, 'select').mockImplementation(async (statement, parameters) => {
    const found = await select(statement, parameters);
    if (sqlOf(database, statement).includes('customer_identity')) rows.push(found.length);
    return found as never;
  });
  return rows;
}

async function storedIds(): Promise<string[]> {
  return (await identitiesOf(service).find()).map(({ entityId }) => entityId).sort();
}

/** Asserts that the browser of every customer exists, and that no browser is half deleted. */
async function expectNoOrphans(): Promise<void> {
  const rows = await identitiesOf(service).find();
  const browsers = new Set(rows.filter(({ secretHash }) => secretHash).map(({ entityId }) => entityId));
  for (const { entityId, browserId, secretHash } of rows) {
    expect(secretHash).not.toBe('');
    // in the row of a customer that a browser created for a link, the browser is the row itself
    if (browserId !== null && browserId !== entityId) expect(browsers).toContain(browserId);
  }
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

interface Step {
  pattern: RegExp;
  before?: () => Promise<void>;
  after?: () => Promise<void>;
}

/** Runs each step before or after the first statement that matches it. */
function hookStatements(...steps: Step[]): void {
  const execute = database.execute.bind(database);
  vi.spyOn(database, 'execute').mockImplementation(async (statement, parameters) => {
    const index = steps.findIndex(({ pattern }) => pattern.test(sqlOf(database, statement)));
    const [step] = index < 0 ? [] : steps.splice(index, 1);
    await step?.before?.();
    const changed = await execute(statement, parameters);
    await step?.after?.();
    return changed;
  });
}

/** A promise and the function that resolves it. */
function signal<Value>(): [Promise<Value>, (value: Value) => void] {
  let resolve: (value: Value) => void = () => undefined;
  const promise = new Promise<Value>((resolves) => {
    resolve = resolves;
  });
  return [promise, resolve];
}
