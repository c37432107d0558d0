import { randomBytes } from 'node:crypto';
import { DataSource, type EntityMetadata, type EntityTarget, type ObjectLiteral } from 'typeorm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Revocation } from '../../src/access-token/revocation.entity.js';
import { UsedAssertion } from '../../src/grants/jwt-bearer/used-assertion.entity.js';
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
import { agentTokenBody, claimsOf, refresh } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TestBrowser, TOKEN } from '../support/cookie-grant.js';
import { identitiesOf } from '../support/identities.js';
import { manage } from '../support/management-api.js';
import { issueAgentToken, purge } from '../support/operator-commands.js';
import { environmentOf, runCli } from '../support/processes.js';
import { sqlOf } from '../support/statements.js';
import { ACME } from '../support/test-registry.js';
import { startTestService, type TestResponse, type TestService } from '../support/test-service.js';
import { agentTokenPair, codesOf, infoStatus, newCustomer, redeem, transferToken } from '../support/transfers.js';

const DAY = 86_400;
const GROUP = `/v2/customer/${ACME}/sales/token`;
const ADMIN_TOKEN = 'admin-token-of-the-tests';
const EXPIRING = [OneTimeCode, RefreshToken, RefreshFamily, Revocation, UsedAssertion] as const;
/** What a purge tells that has deleted so many rows of each of them. */
const ofEach = (rows: number): Purged => ({
  ...{ one_time_code: rows, refresh_token: rows, refresh_family: rows, revocation: rows, used_assertion: rows },
  customer_identity: 0,
});
const NOTHING = ofEach(0);

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
  await dataSource.query("UPDATE lease SET leased_until = '0' WHERE name = 'purge'"); // of a test that failed
});
afterEach(() => {
  vi.restoreAllMocks();
  service.clock.reset();
});
afterAll(() => service?.stop());

describe('what has expired', () => {
  it('goes, in every table, and what is not expired stays', async () => {
    const now = service.clock.now();
    for (const entity of EXPIRING) {
      await insertRows(entity, 3, new Date(now - 1_000));
      await insertRows(entity, 2, new Date(now + 60_000));
    }
    expect(await purge(service)).toEqual(ofEach(3));
    expect(await purge(service)).toEqual(NOTHING);
    for (const entity of EXPIRING) expect(await dataSource.getRepository(entity).count()).toBe(2);
    service.clock.advance({ seconds: 61 });
    expect(await purge(service)).toEqual(ofEach(2));
  });

  it('goes in batches of 1000', async () => {
    const sizes: Record<string, number[]> = {};
    for (const entity of EXPIRING) await insertRows(entity, 2_500, new Date(service.clock.now() - 1_000));
    onChange(/^\s*DELETE FROM (\w+)/, (deleted, [, table = '']) => {
      sizes[table] ??= [];
      sizes[table].push(deleted);
    });
    expect(await purge(service)).toEqual(ofEach(2_500));
    for (const table of ['one_time_code', 'refresh_token', 'refresh_family', 'revocation', 'used_assertion'])
      expect(sizes[table]).toEqual([1_000, 1_000, 500]);
  });

  it('was a transfer token: whether used or not, it goes with its time, and not before', async () => {
    const { access_token } = await newCustomer(service);
    const [used, unused] = [await transferToken(service, access_token), await transferToken(service, access_token)];
    expect((await redeem(service, used)).status).toBe(200);
    expect(await purge(service)).toEqual(NOTHING);
    expect((await redeem(service, unused)).status).toBe(200);
    service.clock.advance({ seconds: 3_601 });
    expect(await purge(service)).toEqual({ ...NOTHING, one_time_code: 2 });
    expect((await redeem(service, used)).status).toBe(400);
  });

  it('was a chain of refreshes: it goes when it has not been used for its time', async () => {
    const first = await agentTokenPair(service);
    service.clock.advance({ seconds: 29 * DAY });
    const second = (await refresh(service, first.refresh_token)).body;
    service.clock.advance({ seconds: 2 * DAY });
    await purge(service);
    expect(await dataSource.getRepository(RefreshFamily).count()).toBe(1);
    expect((await refresh(service, second.refresh_token)).status).toBe(200);
    service.clock.advance({ seconds: 31 * DAY });
    await purge(service);
    for (const entity of [RefreshFamily, RefreshToken]) expect(await dataSource.getRepository(entity).count()).toBe(0);
  });

  it('was a revocation: the token stays revoked until it has expired, and only then it goes', async () => {
    const { access_token } = await newCustomer(service);
    const { exp } = claimsOf(access_token) as { exp: number };
    expect((await service.send('DELETE', TOKEN, bearer(access_token))).status).toBe(200);
    for (const left of [28_000, 60, 5]) {
      service.clock.advance({ seconds: exp - left - service.clock.seconds() });
      expect(await purge(service)).toEqual(NOTHING);
      expect(await infoStatus(service, access_token)).toBe(401);
    }
    service.clock.advance({ seconds: 5 + 120 + 1 });
    expect(await purge(service)).toEqual({ ...NOTHING, revocation: 1 });
    expect(await infoStatus(service, access_token)).toBe(401);
  });
});

describe('idle browsers', () => {
  it('go with all their customers when their cookies have expired; who came since, and backends’ customers, stay', async () => {
    const idle = new TestBrowser(service);
    const erased = new TestBrowser(service);
    const active = new TestBrowser(service);
    const agent = await issueAgentToken(service);
    const { entity_id: ofBackend } = (await service.post(TOKEN, agentTokenBody(), bearer(agent))).body;
    const gone = [(await idle.visit()).body.entity_id, (await idle.visit({}, GROUP)).body.entity_id];
    const stay = [(await active.visit()).body.entity_id, (await active.visit({}, GROUP)).body.entity_id];
    const { entity_id } = (await erased.visit()).body;
    await manage(service, 'DELETE', `/admin/identities/${entity_id}`, bearer(ADMIN_TOKEN));
    await dataSource.getRepository(Revocation).clear();

    service.clock.advance({ seconds: 730 * DAY });
    expect((await active.visit()).body.entity_id).toBe(stay[0]);
    expect((await purge(service))?.customer_identity).toBe(0);
    service.clock.advance({ seconds: 2 * DAY });
    expect((await purge(service))?.customer_identity).toBe(3);
    expect(await idsOf()).toEqual([ofBackend, ...stay].sort());
    expect((await active.visit({}, GROUP)).body.entity_id).toBe(stay[1]);
    const again = await service.post(
      TOKEN,
      agentTokenBody({ entity_id: ofBackend }),
      bearer(await issueAgentToken(service)),
    );
    expect(again.status).toBe(200);

    const returning = await idle.visit();
    expect(returning.status).toBe(200);
    expect(gone).not.toContain(returning.body.entity_id);
  });

  it('stay to the last day of their cookies, and are known on it', async () => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    service.clock.advance({ seconds: 730 * DAY - 60 });
    expect((await purge(service))?.customer_identity).toBe(0);
    expect((await browser.visit()).body.entity_id).toBe(entity_id);
  });

  it('go in batches, however many of those between them are not idle', async () => {
    const today = Math.floor(service.clock.now() / 1000 / DAY);
    const old = service.clock.now() - 800 * DAY * 1000;
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
    onChange(/^\s*DELETE FROM customer_identity/, (deleted) => sizes.push(deleted));
    expect(await purge(service)).toEqual({ ...NOTHING, customer_identity: 1_500 });
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
    expect(await identitiesOf(service).count()).toBe(1_000);
    expect(await purge(service)).toEqual(NOTHING);
  });

  it.each([
    ['before', 'it is kept'],
    ['after', 'it is made anew'],
  ] as const)('that come back in the very moment %s they are given up: %s', async (moment, _then) => {
    const browser = new TestBrowser(service);
    const first = (await browser.visit()).body.entity_id;
    const inGroup = (await browser.visit({}, GROUP)).body.entity_id;
    service.clock.advance({ seconds: 740 * DAY });
    let visited = '';
    const visit = async () => {
      visited = (await browser.visit()).body.entity_id;
    };
    around({ pattern: /SET secret_hash = /, [moment]: visit });
    const purged = (await purge(service))?.customer_identity;
    vi.restoreAllMocks();
    expect(purged).toBe(moment === 'before' ? 0 : 2);
    if (moment === 'before') expect(visited).toBe(first);
    else expect([first, inGroup]).not.toContain(visited);
    await expectWhole();
    expect((await browser.visit()).body.entity_id).toBe(visited);
  });

  it.each([
    ['given up', /SET secret_hash = /],
    ['gone', /^\s*DELETE FROM customer_identity/],
  ])('that were recognised when they were already %s are made anew', async (_, pattern) => {
    const browser = new TestBrowser(service);
    const first = (await browser.visit()).body.entity_id;
    service.clock.advance({ seconds: 740 * DAY });
    const purged: Promise<unknown>[] = [];
    const [visit, visited] = signal<TestResponse>();
    const [stepped, step] = signal<void>();
    // between recognising the browser and noting its day, the visit waits for a purge, which from its step on waits for it
    around(
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
    expect(await idsOf()).toEqual([body.entity_id]);
    expect(body.entity_id).not.toBe(first);
    await expectWhole();
    expect((await browser.visit({}, GROUP)).body.entity_id).toBe(body.entity_id);
  });

  it('that come back in a crowd during a purge are never half there', async () => {
    const browsers = Array.from({ length: 40 }, () => new TestBrowser(service));
    for (const browser of browsers) {
      await browser.visit();
      await browser.visit({}, GROUP);
    }
    service.clock.advance({ seconds: 740 * DAY });
    const purging = purge(service);
    const visits = await Promise.all(browsers.map((browser) => browser.visit()));
    await purging;
    for (const [index, { status, body }] of visits.entries()) {
      expect(status).toBe(200);
      expect((await browsers[index]?.visit())?.body.entity_id).toBe(body.entity_id);
      expect(await infoStatus(service, body.access_token)).toBe(200);
    }
    await expectWhole();
  });
});

describe('an idle browser with 5,000 customers in groups', () => {
  const GROUPS = 5_000;
  let browser: TestBrowser;
  let browserId: string;
  let customers: string[];
  beforeEach(async () => {
    browser = new TestBrowser(service);
    browserId = (await browser.visit()).body.entity_id;
    customers = await insertGroups(browserId, GROUPS);
    service.clock.advance({ seconds: 740 * DAY });
  });

  it('is deleted by statements of at most 1,000 rows', async () => {
    const rows = countRows();
    expect(await purge(service)).toEqual({ ...NOTHING, customer_identity: GROUPS + 1 });
    expect(await idsOf()).toEqual([]);
    expect(Math.max(...rows)).toBe(1_000);
  });

  it('is deleted with its neighbours by statements of as many rows as the caller asks for', async () => {
    const idle = await insertBrowsers(120, 740);
    await insertGroups(idle[7] as string, 230);
    const active = await insertBrowsers(30, 1);
    await insertGroups(active[3] as string, 110);
    const rows = countRows();
    let deleted = 0;
    for await (const step of service.application.get(IdleBrowsers).deleteInSteps(50)) deleted += step;
    expect(deleted).toBe(1 + GROUPS + 120 + 230);
    expect(Math.max(...rows)).toBe(50);
    expect(await identitiesOf(service).count()).toBe(30 + 110);
    await expectWhole();
  });

  it('is not recognised when a purge has deleted a part of it, and goes with the next purge', async () => {
    const thief: Lease = { name: 'purge', owner: 'another process' };
    around({
      pattern: /^\s*DELETE FROM customer_identity/,
      after: async () => {
        await dataSource.query("UPDATE lease SET leased_until = '0' WHERE name = 'purge'");
        await acquireLease(dataSource, thief, service.clock.now(), 60_000);
      },
    });
    expect((await purge(service))?.customer_identity).toBe(1_000);
    await releaseLease(dataSource, thief);
    expect(await identitiesOf(service).count()).toBe(GROUPS + 1 - 1_000);
    const left = new Set(await idsOf());
    for (const shown of [browserId, customers.find((id) => left.has(id)) as string]) {
      const cookie = (browser.cookie as string).replace(browserId, shown);
      const { body } = await service.post(TOKEN, cookieBody(), { cookie });
      expect(left).not.toContain(body.entity_id);
    }
    expect((await purge(service))?.customer_identity).toBe(GROUPS + 1 - 1_000);
    expect(await identitiesOf(service).count()).toBe(2);
    await expectWhole();
  });

  it.each([
    ['first', 0],
    ['middle', 2_500],
    ['last', GROUPS - 1],
  ])(
    'stays with all of them when the %s of them must stay, and participants are asked about 500 at once',
    async (_, index) => {
      const other = await insertBrowsers(3, 740);
      const participants = service.application.get(CustomerDataParticipants);
      const asked: string[] = [];
      vi.spyOn(participants, 'mustRetain').mockImplementation(async (ids) => {
        expect(ids.length).toBeLessThanOrEqual(500);
        asked.push(...ids);
        return ids.filter((id) => id === customers[index]);
      });
      expect((await purge(service))?.customer_identity).toBe(other.length);
      expect(await identitiesOf(service).count()).toBe(GROUPS + 1);
      expect(new Set(asked).size).toBe(asked.length);
      expect(asked).toEqual(expect.arrayContaining(other));
      await expectWhole();
    },
  );

  it('goes although customers in the middle of its groups were erased', async () => {
    const erased = customers.slice(1_000, 3_000);
    for (let at = 0; at < erased.length; at += 500) {
      const some = erased.slice(at, at + 500);
      await identitiesOf(service).update(some, { organizationId: null, groupId: null });
    }
    expect((await purge(service))?.customer_identity).toBe(GROUPS + 1);
    expect(await idsOf()).toEqual([]);
  });
});

describe('of several processes one purges at a time', () => {
  // from here on no bearers: whichever service was started last in a process checks those of all
  it('of two at once one does, and the other is told', async () => {
    await insertRows(OneTimeCode, 2_500, new Date(service.clock.now() - 1_000));
    const other = await startTestService({ database: service.database });
    try {
      const done = await Promise.all([purge(service), purge(other)]);
      expect(done.filter((purged) => purged === undefined)).toHaveLength(1);
      expect(done.find((purged) => purged !== undefined)?.one_time_code).toBe(2_500);
      expect(await purge(other)).toEqual(NOTHING);
      expect(await purge(service)).toEqual(NOTHING);
    } finally {
      await other.stop();
    }
  });

  it('one that has died holds the others up for a minute', async () => {
    const dead: Lease = { name: 'purge', owner: 'a process that has died' };
    await acquireLease(dataSource, dead, service.clock.now(), 60_000);
    await insertRows(OneTimeCode, 1, new Date(service.clock.now() - 1_000));
    expect(await purge(service)).toBeUndefined();
    expect(await codesOf(service).count()).toBe(1);
    service.clock.advance({ seconds: 61 });
    expect(await purge(service)).toEqual({ ...NOTHING, one_time_code: 1 });
  });

  it('one whose lease was taken stops after its batch', async () => {
    await insertRows(OneTimeCode, 2_500, new Date(service.clock.now() - 1_000));
    const thief: Lease = { name: 'purge', owner: 'another process' };
    around({
      pattern: /^\s*DELETE FROM one_time_code/,
      after: async () => {
        await dataSource.query("UPDATE lease SET leased_until = '0' WHERE name = 'purge'");
        await acquireLease(dataSource, thief, service.clock.now(), 60_000);
      },
    });
    expect((await purge(service))?.one_time_code).toBe(1_000);
    expect(await purge(service)).toBeUndefined();
    await releaseLease(dataSource, thief);
  });

  it('dist/cli.js purge tells what it deleted, and exits with 1 when another process is at it', async () => {
    await insertRows(OneTimeCode, 1_200, new Date(service.clock.now() - 1_000));
    await insertRows(Revocation, 2, new Date(service.clock.now() + 600_000));
    const environment = { ...environmentOf(service.database), LOG_LEVEL: 'error' };
    const first = await runCli(['purge'], environment);
    expect(first).toMatchObject({ code: 0, stderr: '' });
    const printed = Object.entries({ ...NOTHING, one_time_code: 1_200 }).map(([table, rows]) => `${table}: ${rows}`);
    expect(first.stdout.trimEnd().split('\n').sort()).toEqual(printed.sort());

    const other: Lease = { name: 'purge', owner: 'another process' };
    await acquireLease(dataSource, other, Date.now(), 60_000);
    const held = await runCli(['purge'], environment);
    expect(held).toMatchObject({ code: 1, stdout: '', stderr: 'another process is purging\n' });
    await releaseLease(dataSource, other);
    expect(await runCli(['purge', 'more'], environment)).toMatchObject({ code: 2, stdout: '' });
  });
});

/** Inserts rows that have nothing of interest but when they expire. */
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
      return [
        propertyName,
        randomBytes(32)
          .toString('hex')
          .slice(0, Number(length || 64)),
      ];
    });
  return Object.fromEntries(values);
}

/** Customers of a browser in so many groups of several organizations, in the order in which the purge reads them. */
async function insertGroups(browserId: string, count: number): Promise<string[]> {
  const now = service.clock.now();
  const rows = Array.from({ length: count }, (_, index) => {
    const organizationId = `${ACME.slice(0, -1)}${Math.floor((index * 4) / count)}`;
    const groupId = `group-${String(index).padStart(6, '0')}`;
    const own = { browserId, organizationId, groupId, secretHash: null, lastSeenDay: null };
    return { ...own, entityId: uuidv7(now + index), createdAt: new Date(now) };
  });
  for (let at = 0; at < count; at += 500) await identitiesOf(service).insert(rows.slice(at, at + 500));
  return rows.map(({ entityId }) => entityId);
}

/** Browsers with one customer each that were last seen so many days ago. */
async function insertBrowsers(count: number, days: number): Promise<string[]> {
  const seen = service.clock.now() - days * DAY * 1000;
  const rows = Array.from({ length: count }, (_, index) => {
    const entityId = uuidv7(service.clock.now() - 800 * DAY * 1000 + index);
    const own = { browserId: entityId, organizationId: ACME, groupId: '', createdAt: new Date(seen) };
    const secretHash = randomBytes(32).toString('hex');
    return { ...own, entityId, secretHash, lastSeenDay: Math.floor(seen / 1000 / DAY) };
  });
  await identitiesOf(service).insert(rows);
  return rows.map(({ entityId }) => entityId);
}

/** How many rows each statement on customers reads, changes or deletes from now on. */
function countRows(): number[] {
  const rows: number[] = [];
  onChange(/customer_identity/, (changed) => rows.push(changed));
  const select = database.select.bind(database);
  vi.spyOn(database, 'select').mockImplementation(async (statement, parameters) => {
    const found = await select(statement, parameters);
    if (sqlOf(database, statement).includes('customer_identity')) rows.push(found.length);
    return found as never;
  });
  return rows;
}

async function idsOf(): Promise<string[]> {
  return (await identitiesOf(service).find()).map(({ entityId }) => entityId).sort();
}

/** Insists that every customer of a browser has its browser, and that no browser is being given up. */
async function expectWhole(): Promise<void> {
  const rows = await identitiesOf(service).find();
  const browsers = new Set(rows.filter(({ secretHash }) => secretHash).map(({ entityId }) => entityId));
  for (const { browserId, secretHash } of rows) {
    expect(secretHash).not.toBe('');
    if (browserId !== null) expect(browsers).toContain(browserId);
  }
}

/** Tells how many rows each statement that matches has changed. */
function onChange(pattern: RegExp, tell: (changed: number, match: RegExpExecArray) => void): void {
  const execute = database.execute.bind(database);
  vi.spyOn(database, 'execute').mockImplementation(async (statement, parameters) => {
    const changed = await execute(statement, parameters);
    const match = pattern.exec(sqlOf(database, statement));
    if (match) tell(changed, match);
    return changed;
  });
}

interface Step {
  pattern: RegExp;
  before?: () => Promise<void>;
  after?: () => Promise<void>;
}

/** Does something before or after the first statement that matches. */
function around(...steps: Step[]): void {
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

/** A promise, and what resolves it. */
function signal<Value>(): [Promise<Value>, (value: Value) => void] {
  let resolve: (value: Value) => void = () => undefined;
  const promise = new Promise<Value>((resolves) => {
    resolve = resolves;
  });
  return [promise, resolve];
}
