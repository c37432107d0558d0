import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { REQUESTS_PER_RACE, race } from '../../../packages/conformance-kit/src/race.js';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { CustomerKey } from '../../../src/customer/customer-key.entity.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { DEATH, failAtEachStatement, loseEachResponse, OUTAGE } from '../../support/dying-transactions.js';
import { expectInvalidRequest } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { beginWindow } from '../../support/limit-windows.js';
import { type LossyProxy, startLossyProxy } from '../../support/lossy-proxy.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { times } from '../../support/races.js';
import { database, newUser, other, service, signInAs, startSignInServices } from '../../support/sign-in-services.js';
import { delaySelects, statementsOf } from '../../support/statements.js';
import { ACME, RIVAL, RIVAL_AGENT, RIVAL_SITE } from '../../support/test-registry.js';
import { startTestService, type TestService } from '../../support/test-service.js';
import { everythingIn, infoStatus } from '../../support/transfers.js';
import { serviceOfTest } from '../../support/use-service.js';

/** The customer and its key. */
const USER_STATEMENT_COUNT = 2;

startSignInServices();

let agent: string;
let rivalAgent: string;
beforeAll(async () => {
  agent = await issueAgentToken(service);
  rivalAgent = await issueAgentToken(service, { email: RIVAL_AGENT.email, clientId: RIVAL_SITE });
});

const requestFor = (externalId: unknown, more: object = {}, at: TestService = service, path = TOKEN) =>
  at.post(path, agentTokenBody({ external_id: externalId, ...more }), bearer(agent));
const customerOf = async (externalId: string) => (await requestFor(externalId)).body;
const lookUp = (query: Record<string, string>) =>
  service.admin('GET', `/admin/customers?${new URLSearchParams(query)}`);

describe('protocol §5.7: an external_id in the agent token grant', () => {
  it.each([TOKEN, '/customer'])('creates a customer once, and later gives tokens for it, at %s', async (path) => {
    const id = newUser();
    const send = () => requestFor(id, path === TOKEN ? {} : { grant_type: undefined }, service, path);
    const [first, second] = [await send(), await send()];
    expect(first.status).toBe(200);
    const fields = ['access_token', 'client_id', 'created', 'entity_id', 'expires_in', 'organization_id', 'token_type'];
    expect(Object.keys(first.body).sort()).toEqual(fields);
    expect(first.body.created).toBe(true);
    expect(second.body).toMatchObject({ created: false, entity_id: first.body.entity_id });
    expect(await infoStatus(service, second.body.access_token)).toBe(200);
  });

  it(`gives ${REQUESTS_PER_RACE} parallel calls to two processes one customer, and created: true to one of them`, async () => {
    for (let round = 0; round < 2; round++) {
      const before = await identitiesOf(service).count();
      const text = JSON.stringify(agentTokenBody({ external_id: newUser() }));
      const responses = await race([service, other], TOKEN, text, REQUESTS_PER_RACE, bearer(agent));
      expect(responses.map(({ status }) => status)).toEqual(Array(REQUESTS_PER_RACE).fill(200));
      expect(new Set(responses.map(({ body }) => body.entity_id)).size).toBe(1);
      expect(responses.filter(({ body }) => body.created)).toHaveLength(1);
      expect(await identitiesOf(service).count()).toBe(before + 1);
    }
  });

  it('compares the id exactly', async () => {
    const ids = [
      'user',
      'USER',
      'user ',
      ' user',
      'us\u00e9r',
      'use\u0301r',
      'us\u200ber',
      'usеr',
      '\uff55ser',
      '😀',
      '😁',
    ];
    const suffix = randomUUID();
    const customers = new Set<string>();
    for (const id of ids) {
      customers.add((await customerOf(`${id}${suffix}`)).entity_id);
      customers.add((await customerOf(`${suffix}${id}`)).entity_id);
    }
    expect(customers.size).toBe(2 * ids.length);
  });

  it.each([
    ['255 units', 'x'.repeat(219)],
    ['255 units with surrogate pairs', `x${'😀'.repeat(109)}`],
  ])('accepts an id of %s', async (_, text) => {
    expect((await requestFor(`${randomUUID()}${text}`)).status).toBe(200);
  });

  it.each<[string, unknown, string, object?]>([
    ['of 256 units', 'x'.repeat(256), 'must be 1 to 255 characters'],
    ['with a control character', 'user\u0000', 'must be 1 to 255 characters'],
    ['with a lone surrogate', 'user\ud800', 'must be 1 to 255 characters'],
    ['that is empty', '', 'must not be empty'],
    ['next to an entity_id', 'user', '', { entity_id: randomUUID() }],
  ])('refuses an id %s', async (_, externalId, rule, more) => {
    const before = await identitiesOf(service).count();
    expectInvalidRequest(await requestFor(externalId, more), new RegExp(`^external_id: ${rule}`));
    expect(await identitiesOf(service).count()).toBe(before);
  });

  it('belongs to the agent’s organization', async () => {
    const id = newUser();
    const inAcme = await customerOf(id);
    const body = agentTokenBody({ client_id: RIVAL_SITE, external_id: id });
    const inRival = (await service.post(TOKEN, body, bearer(rivalAgent))).body;
    expect(inRival).toMatchObject({ created: true, organization_id: RIVAL });
    expect(inRival.entity_id).not.toBe(inAcme.entity_id);
    expectInvalidRequest(await requestFor(id, { organization_id: RIVAL }), /^organization_id: /);
  });

  it('is the sub of the JWT bearer grant: both grants lead to one customer, also at the same time', async () => {
    const [signedInFirst, requestedFirst, raced] = [newUser(), newUser(), newUser()];
    const { entity_id } = (await signInAs(signedInFirst)).body;
    expect(await customerOf(signedInFirst)).toMatchObject({ entity_id, created: false });
    const requested = await customerOf(requestedFirst);
    expect((await signInAs(requestedFirst)).body.entity_id).toBe(requested.entity_id);
    const sends = Array.from({ length: 20 }, (_, index) => {
      const at = index % 4 < 2 ? service : other;
      return index % 2 ? requestFor(raced, {}, at) : signInAs(raced, {}, {}, at);
    });
    const responses = await Promise.all(sends);
    expect(responses.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(new Set(responses.map(({ body }) => body.entity_id)).size).toBe(1);
  });

  it('costs one SELECT for a known user, besides the check of the agent token', async () => {
    const id = newUser();
    await customerOf(id);
    expect(await statementsOf(service, () => requestFor(id))).toEqual(['SELECT', 'SELECT']);
  });

  it('is stored only as a hash, and is in no audit event and no error response', async () => {
    const id = newUser();
    service.audit.length = 0;
    const { entity_id } = await customerOf(id);
    await customerOf(id);
    expect(await everythingIn(service)).not.toContain(id);
    expect(JSON.stringify(service.audit)).not.toContain(id);
    const subject = { kind: 'customer', id: entity_id };
    const created = service.audit.filter(({ event }) => event === 'identity.created');
    expect(created).toEqual([expect.objectContaining({ actor: expect.objectContaining({ kind: 'agent' }), subject })]);
    expect((await requestFor(`${id}\u0000`)).text).not.toContain(id);
  });

  it('counts against the limit of new customers only when it creates one, also in parallel, and inserts nothing beyond it', async () => {
    const limited = await serviceOfTest({ database, environment: { RATE_LIMIT: 'identities=2/60' } });
    beginWindow(limited);
    const [one, two, three] = [newUser(), newUser(), newUser()];
    const before = await service.rowsOf(CustomerKey).count();
    delaySelects(limited);
    const parallel = await times(5, () => requestFor(one, {}, limited));
    expect(parallel.map(({ status }) => status)).toEqual(Array(5).fill(200));
    vi.restoreAllMocks();
    const statuses: number[] = [];
    for (const id of [two, one, three, three, two]) statuses.push((await requestFor(id, {}, limited)).status);
    expect(statuses).toEqual([200, 200, 429, 429, 200]);
    expect(await service.rowsOf(CustomerKey).count()).toBe(before + 2);
  });
});

it.each([
  ['because the process dies: the next call creates one customer', DEATH, 500],
  ['because the database is away: the next call creates one customer', OUTAGE, 503],
])(
  'a transaction that fails at whichever statement while it creates the customer of an external_id, %s',
  async (_, error, status) => {
    const errors = await failAtEachStatement(service, error, async (hasFailed) => {
      const id = newUser();
      const before = await identitiesOf(service).count();
      const failed = await requestFor(id);
      expect(failed.status).toBe(hasFailed() ? status : 200);
      const first = failed.status === 200 ? failed : await requestFor(id);
      const second = await requestFor(id, {}, other);
      expect(first.body.created).toBe(true);
      expect(second.body).toMatchObject({ created: false, entity_id: first.body.entity_id });
      expect(await identitiesOf(service).count()).toBe(before + 1);
    });
    expect(errors).toBe(2 * USER_STATEMENT_COUNT);
  },
);

describe('protocol §9.2: GET /admin/customers', () => {
  it('finds the customer with an external_id of an organization', async () => {
    const id = newUser();
    const { entity_id } = await customerOf(id);
    const { status, body } = await lookUp({ organization_id: ACME, external_id: id });
    expect(status).toBe(200);
    expect(body).toMatchObject({ entity_id, organization_id: ACME, browser: false });
    expect((await lookUp({ organization_id: ACME, external_id: `${id} ` })).status).toBe(404);
    expect((await lookUp({ organization_id: RIVAL, external_id: id })).status).toBe(404);
  });

  it.each<[Record<string, string>, string]>([
    [{ external_id: 'user' }, 'organization_id: required'],
    [{ organization_id: ACME, external_id: '' }, 'external_id: must not be empty'],
    [{ organization_id: 'acme', external_id: 'user' }, 'organization_id: must be a UUID in lower case'],
    [{ organization_id: ACME, external_id: 'x'.repeat(256) }, 'external_id: must be 1 to 255 characters'],
  ])('responds with invalid_request to %j', async (query, hint) => {
    expectInvalidRequest(await lookUp(query), new RegExp(`^${hint}`));
  });
});

describe.runIf(onMariadb)('a database response that is lost while the customer of an external_id is created', () => {
  let proxy: LossyProxy;
  let remote: TestService;
  beforeAll(async () => {
    proxy = await startLossyProxy(database.url);
    remote = await startTestService({ database: { ...database, url: proxy.through(database.url) } });
  });
  afterAll(async () => {
    await remote?.stop();
    await proxy?.close();
  });

  it('causes 503 or none, no second customer and no wrong created, to whichever statement and to the COMMIT', async () => {
    let lost = 0;
    const last = await loseEachResponse(remote, proxy, async () => {
      const id = newUser();
      const before = await identitiesOf(service).count();
      const { status, body } = await requestFor(id, {}, remote);
      const isLast = lost > USER_STATEMENT_COUNT;
      expect(status).toBe(isLast ? 200 : 503);
      const isCreated = isLast || lost === 0;
      const later = await customerOf(id);
      expect(later.created).toBe(!isCreated);
      if (isLast) expect(later.entity_id).toBe(body.entity_id);
      expect(await customerOf(id)).toMatchObject({ created: false, entity_id: later.entity_id });
      expect(await identitiesOf(service).count()).toBe(before + 1);
      lost++;
    });
    expect(last).toBe(USER_STATEMENT_COUNT);
  });

  it('causes 503 if the COMMIT gets no response until the deadline, and the next call gets the customer', async () => {
    const before = proxy.lost;
    proxy.silenceAt('COMMIT');
    const id = newUser();
    expect((await requestFor(id, {}, remote)).status).toBe(503);
    expect(proxy.lost - before).toBe(1);
    const first = await customerOf(id);
    expect(await customerOf(id)).toMatchObject({ created: false, entity_id: first.entity_id });
  });
});
