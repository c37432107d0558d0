import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { RevocationReader } from '../../../src/discovery/introspection/feed-reader.js';
import { FeedPublisher } from '../../../src/feed/feed-publisher.js';
import { FeedStore } from '../../../src/feed/feed-store.js';
import { RevocationPages } from '../../../src/feed/revocation-pages.js';
import type { Statement } from '../../../src/platform/database/statement.js';
import {
  agentTokenBody,
  changePassword,
  claimsOf,
  exchangeCode,
  newAgent,
  refresh,
} from '../../support/agent-tokens.js';
import { basic, bearer } from '../../support/authorization-headers.js';
import { AgentBrowser, FOR_PUBLIC } from '../../support/authorization-page.js';
import { cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { deferred } from '../../support/deferred.js';
import { endSessionsAsOperator } from '../../support/end-sessions.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import {
  FEED_SECRET,
  FEED_SERVERS,
  FeedConsumer,
  type FeedEntry,
  POLL_PAUSE_MS,
  readFeed,
} from '../../support/revocation-feed.js';
import { clientOf } from '../../support/statements.js';
import { ACME, ACME_AGENT } from '../../support/test-registry.js';
import { shortenPauses } from '../../support/timers.js';
import {
  agentTokenPair,
  ageRedemption,
  authorizationCode,
  newCustomer,
  redeem,
  sessionsIn,
  transferToken,
} from '../../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../../support/use-service.js';

beforeEach(() => shortenPauses(POLL_PAUSE_MS));

const registry = { ...refreshingRegistry(), resource_servers: FEED_SERVERS };

const service = useService({ registry });

const consumer = (id: string) => new FeedConsumer([service], basic(id, FEED_SECRET));
const operator = () => new FeedConsumer([service], bearer(ADMIN_TOKEN));

/** Whether the consumers of the three resource servers have an entry, after the operator has it. */
async function seenBy(entry: Partial<FeedEntry>): Promise<Record<string, boolean>> {
  await operator().find(entry);
  const seen = FEED_SERVERS.map(async ({ id }) => {
    const server = consumer(id);
    await server.catchUp();
    return [id, server.has(entry)] as const;
  });
  return Object.fromEntries(await Promise.all(seen));
}

/** In the entry of a session that is gone. */
const MAX_EPOCH = 2 ** 31 - 1;
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const CUSTOMERS_ONLY = { 'customer-server': true, 'agent-server': false, 'other-server': false };
const BOTH = { 'customer-server': true, 'agent-server': true, 'other-server': false };

const sidOf = (token: string) => claimsOf(token).sid as string;

/** Reads pages until an entry has a higher generation of a customer. Returns the entry. */
async function findHigher(server: FeedConsumer, value: string, than: number): Promise<FeedEntry> {
  const find = () => server.entries.find((entry) => entry.value === value && (entry.generation ?? 0) > than);
  while (!find()) await server.read(5);
  return find() as FeedEntry;
}

const newCustomerId = async () => claimsOf((await newCustomer(service)).access_token).sub as string;

const lost = () => Promise.reject(Object.assign(new Error('the connection was lost'), { code: 'ECONNRESET' }));

const isPublication = (statement: Statement) =>
  statement.text(clientOf(service).dialect).startsWith('UPDATE revocation_feed SET position');

/** Runs `meanwhile` after the next publication, whose response then does not arrive. */
function losePublication(meanwhile: () => Promise<unknown>): void {
  const client = clientOf(service);
  const write = client.write.bind(client);
  let isLost = false;
  vi.spyOn(client, 'write').mockImplementation(async (statement, parameters) => {
    const matched = await write(statement, parameters);
    if (isLost || !isPublication(statement) || matched !== 1) return matched;
    isLost = true;
    await meanwhile();
    return lost();
  });
}

describe('the revocation feed', () => {
  it('has the session of a customer token that was ended, for resource servers of customer tokens only', async () => {
    const { access_token } = await newCustomer(service);
    await service.send('DELETE', TOKEN, bearer(access_token));
    const entry = { kind: 'session', value: sidOf(access_token), epoch: 1 };
    expect(await seenBy(entry)).toEqual(CUSTOMERS_ONLY);
    expect(await operator().find(entry)).toEqual({ ...entry, expires_at: expect.stringMatching(TIME) });
  });

  it('has each rise of the epoch of a session', async () => {
    const first = await service.visit();
    const follower = consumer('customer-server');
    for (const epoch of [1, 2]) {
      const { access_token } = (await service.visit(cookieHeader(first))).body;
      expect(claimsOf(access_token)).toMatchObject({ sid: sidOf(first.body.access_token), ep: epoch - 1 });
      await service.send('DELETE', TOKEN, bearer(access_token));
      await follower.find({ kind: 'session', value: sidOf(access_token), epoch });
    }
  });

  it('has the id of a customer token without a session that was ended', async () => {
    const agent = bearer(await issueAgentToken(service));
    const { access_token } = (await service.post(TOKEN, agentTokenBody(), agent)).body;
    await service.send('DELETE', TOKEN, bearer(access_token));
    const entry = { kind: 'token', value: claimsOf(access_token).jti as string };
    expect(await seenBy(entry)).toEqual(CUSTOMERS_ONLY);
    expect(await operator().find(entry)).toEqual({
      ...entry,
      issued_before: '9999-12-31T00:00:00.000Z',
      expires_at: expect.stringMatching(TIME),
    });
  });

  it('has the devices and transferred tokens that end with a token, but not an unused transfer token', async () => {
    const { access_token } = await newCustomer(service);
    const device = await stayOf(service, access_token);
    const moved = (await redeem(service, await transferToken(service, device.access_token))).body;
    await transferToken(service, access_token);
    await service.send('DELETE', TOKEN, bearer(access_token));
    const all = operator();
    for (const token of [access_token, device.access_token, moved.access_token])
      await all.find({ kind: 'session', value: sidOf(token) });
    const codes = await sessionsIn(service).findBy({ customerId: claimsOf(access_token).sub as string, kind: 'code' });
    expect(codes).toEqual([]);
    const sessions = all.entries.filter(({ kind }) => kind === 'session').map(({ value }) => value);
    expect(new Set(sessions).size).toBe(sessions.length);
  });

  it('has an agent token that was ended, which ends customer tokens too', async () => {
    const { access_token } = await agentTokenPair(service);
    await service.send('DELETE', '/v2/token', bearer(access_token));
    expect(await seenBy({ kind: 'session', value: sidOf(access_token), epoch: 1 })).toEqual(BOTH);
  });

  it('has the session of an agent whose refresh token was ended', async () => {
    const { access_token, refresh_token } = await agentTokenPair(service);
    await refresh(service, refresh_token);
    await service.admin('POST', '/oauth2/revoke', { token: refresh_token });
    expect(await seenBy({ kind: 'session', value: sidOf(access_token), epoch: MAX_EPOCH })).toEqual(BOTH);
  });

  it('has the session of a customer’s refresh token that was ended, with an epoch higher than any', async () => {
    const { access_token, refresh_token } = await stayOf(service);
    await service.admin('POST', '/oauth2/revoke', { token: refresh_token });
    const entry = { kind: 'session', value: sidOf(access_token) };
    expect(await seenBy(entry)).toEqual(CUSTOMERS_ONLY);
    expect(await operator().find(entry)).toMatchObject({ epoch: MAX_EPOCH });
  });

  it('has the session that a replayed transfer token gave', async () => {
    const code = await transferToken(service, (await newCustomer(service)).access_token);
    const { access_token } = (await redeem(service, code)).body;
    await ageRedemption(service, code, 3);
    expect((await redeem(service, code)).status).toBe(400);
    expect(await seenBy({ kind: 'session', value: sidOf(access_token) })).toEqual(CUSTOMERS_ONLY);
  });

  it('has the session that a replayed authorization code gave', async () => {
    const code = await authorizationCode(service);
    const { access_token } = (await exchangeCode(service, code)).body;
    await ageRedemption(service, code, 3);
    expect((await exchangeCode(service, code)).status).toBe(400);
    expect(await seenBy({ kind: 'session', value: sidOf(access_token), epoch: MAX_EPOCH })).toEqual(BOTH);
  });

  it('has a client that was deleted, whose tokens are of customers and agents', async () => {
    const id = `client-${randomUUID()}`;
    const client = { client_id: id, name: id, client_type: 'web', organization_id: ACME };
    await service.admin('POST', '/admin/clients', client);
    await service.admin('DELETE', `/admin/clients/${id}`);
    expect(await seenBy({ kind: 'client', value: id })).toEqual(BOTH);
    const { issued_before = '' } = await operator().find({ kind: 'client', value: id });
    expect(Date.parse(issued_before)).toBeGreaterThan(service.clock.now());
  });

  it('has the generation of a customer whose sessions were ended or that was erased, again after each rise', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const follower = consumer('customer-server');
    let generation = claimsOf(access_token).gen as number;
    const end = () => endSessionsAsOperator(service, ADMIN_TOKEN, entity_id);
    for (const event of [end, end, () => service.erase(entity_id)]) {
      expect((await event()).status).toBe(200);
      const entry = await findHigher(follower, entity_id, generation);
      expect(Object.keys(entry).sort()).toEqual(['expires_at', 'generation', 'kind', 'value']);
      generation = entry.generation as number;
      expect(await seenBy({ kind: 'subject', value: entity_id, generation })).toEqual(CUSTOMERS_ONLY);
    }
  });

  it('has each session of an agent with a new password, or that was deleted', async () => {
    const { path, email } = await newAgent(service);
    for (const change of [
      () => service.admin('PATCH', path, { password: 'a new password of the agent' }),
      () => service.admin('DELETE', path),
    ]) {
      const tokens = [await issueAgentToken(service, { email }), await issueAgentToken(service, { email })];
      await change();
      for (const token of tokens)
        expect(await seenBy({ kind: 'session', value: sidOf(token), epoch: MAX_EPOCH })).toEqual(BOTH);
    }
  });

  it('has the session of an agent whose password the registry file changed', async () => {
    const token = await issueAgentToken(service);
    await changePassword(service, registry, ACME_AGENT.email);
    expect(await seenBy({ kind: 'session', value: sidOf(token), epoch: MAX_EPOCH })).toEqual(BOTH);
    expect(claimsOf(await issueAgentToken(service)).sub).toBe(claimsOf(token).sub);
  });

  it('has no entry for an agent whose change leaves its tokens valid, or for a sign-in at the page', async () => {
    const { path, email } = await newAgent(service);
    const browser = new AgentBrowser(service);
    await browser.signIn({ email, password: 'a password of the agent' }, FOR_PUBLIC);
    const token = await issueAgentToken(service, { email });
    await service.admin('PATCH', path, { name: 'Renamed' });
    await browser.submit(await browser.open(FOR_PUBLIC), {}, '/sign-out');
    const { entity_id } = await newCustomer(service);
    await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id);
    const all = operator();
    await all.find({ kind: 'subject', value: entity_id });
    expect(all.has({ value: sidOf(token) })).toBe(false);
  });

  it('keeps an entry of an agent’s token for as long as any access token can live, and no longer', async () => {
    const token = await issueAgentToken(service);
    const before = service.clock.now();
    await service.send('DELETE', '/v2/token', bearer(token));
    const entry = { kind: 'session', value: sidOf(token) };
    const { expires_at } = await operator().find(entry);
    expect(Date.parse(expires_at)).toBeGreaterThanOrEqual(before + 86_400_000);
    service.clock.advance({ seconds: 86_000 });
    expect(await seenBy(entry)).toEqual(BOTH);
    service.clock.advance({ seconds: 1_000 });
    const late = operator();
    await late.catchUp();
    expect(late.has(entry)).toBe(false);
  });
});

it('a revocation in the feed is not missed if it is changed after a publication whose response was lost', async () => {
  const sub = await newCustomerId();
  const consumer = new FeedConsumer([service]);
  await consumer.catchUp();
  const changed = new Promise<number>((resolve) => {
    losePublication(async () => {
      const { generation = 0 } = await consumer.find({ value: sub });
      await endSessionsAsOperator(service, ADMIN_TOKEN, sub);
      resolve(generation);
    });
  });
  await endSessionsAsOperator(service, ADMIN_TOKEN, sub);
  await findHigher(consumer, sub, await changed);
});

describe('a page of the feed', () => {
  const untilIncomplete = () => expect.poll(async () => (await readFeed(service, '')).body.complete).toBe(false);

  it('is not complete while revocations wait because no process can publish them', async () => {
    const sub = await newCustomerId();
    const client = clientOf(service);
    const write = client.write.bind(client);
    vi.spyOn(client, 'write').mockImplementation((statement, parameters) =>
      isPublication(statement) ? lost() : write(statement, parameters),
    );
    await endSessionsAsOperator(service, ADMIN_TOKEN, sub);
    await untilIncomplete();
    vi.restoreAllMocks();
    const consumer = new FeedConsumer([service]);
    await consumer.catchUp();
    await consumer.find({ value: sub });
  });

  it('is 503 when the process has not read for 3 s whether revocations wait', async () => {
    vi.spyOn(service.application.get(FeedStore), 'readState').mockImplementation(lost);
    const status = async () => (await readFeed(service, '')).status;
    await expect.poll(status, { timeout: 10_000 }).toBe(503);
    vi.restoreAllMocks();
    await expect.poll(status).toBe(200);
  });

  it('that was read before a publication does not let a later request wait', async () => {
    const [pages, publisher] = [RevocationPages, FeedPublisher].map((type) =>
      service.application.get(type, { strict: false }),
    ) as [RevocationPages, FeedPublisher];
    const consumer = new FeedConsumer([service]);
    await consumer.catchUp();
    const sub = await newCustomerId();
    const readFromDatabase = Reflect.get(pages, 'readAlone');
    const released = deferred();
    Reflect.set(pages, 'readAlone', async (after: number) => {
      Reflect.set(pages, 'readAlone', readFromDatabase);
      const page = await readFromDatabase(after);
      await released.promise;
      return page;
    });
    const { cursor } = consumer;
    const requests = vi.spyOn(pages, 'read');
    const first = readFeed(service, `?after=${cursor}`);
    await expect.poll(() => requests.mock.calls).toHaveLength(1);
    const highest = () => publisher.state.highest?.position ?? 0;
    const before = highest();
    await endSessionsAsOperator(service, ADMIN_TOKEN, sub);
    await expect.poll(highest).toBeGreaterThan(before);
    const wait = vi.spyOn(service.application.get(RevocationReader, { strict: false }), 'wait');
    const second = readFeed(service, `?after=${cursor}&wait=25`);
    await expect.poll(() => requests.mock.calls).toHaveLength(2);
    released.resolve();
    expect((await first).body.revocations).toEqual([]);
    expect((await second).body.revocations).toMatchObject([{ value: sub }]);
    expect(wait).not.toHaveBeenCalled();
  });

  it('is read again when a wait ends without an entry', async () => {
    const consumer = new FeedConsumer([service]);
    await consumer.catchUp();
    const feed = service.application.get(RevocationReader, { strict: false });
    const reading = readFeed(service, `?after=${consumer.cursor}&wait=25`);
    await expect.poll(() => Reflect.get(feed, 'ends').size).toBe(1);
    const publisher = service.application.get(FeedPublisher, { strict: false });
    vi.spyOn(publisher, 'isBehind', 'get').mockReturnValue(true);
    for (const end of Reflect.get(feed, 'ends')) end('ended');
    expect((await reading).body).toMatchObject({ revocations: [], complete: false });
  });
});
