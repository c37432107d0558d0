import { randomUUID } from 'node:crypto';
import { IsNull, Not } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { BrowserLink, KnownBrowser, LinkAncestor } from '../../../src/identity/browser-link.entity.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { expectError } from '../../support/expect-error.js';
import { identitiesOf, secretOf } from '../../support/identities.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { times, winnerOf } from '../../support/races.js';
import { linksOf, moveOf, remember, rememberedPair, rememberingRegistry } from '../../support/remember.js';
import { delaySelects, statementsOf } from '../../support/statements.js';
import { ACME, PUBLIC_SITE, RIVAL } from '../../support/test-registry.js';
import type { TestResponse } from '../../support/test-service.js';
import { everythingIn, newCustomer } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const group = (name: string) => `/v2/customer/${ACME}/${name}/token`;
const AT_RIVAL = { client_id: PUBLIC_SITE, organization_id: RIVAL };

const service = useService({ registry: rememberingRegistry() });
const browsers = () => service.rowsOf(KnownBrowser).count();
const links = () => service.rowsOf(BrowserLink);
const ancestors = () => service.rowsOf(LinkAncestor).count();

/** A browser with a customer in two groups and in another organization, but not outside of the groups. */
async function laptop(): Promise<{ cookie: string; ids: string[]; secret: string }> {
  const browser = new TestBrowser(service);
  const responses = [
    await browser.visit({}, group('a')),
    await browser.visit({}, group('b')),
    await browser.visit(AT_RIVAL),
  ];
  const [last] = responses.slice(-1) as [TestResponse];
  return { cookie: browser.cookie as string, ids: responses.map(({ body }) => body.entity_id), secret: secretOf(last) };
}
const idsOf = async (cookie: string) => [
  await service.idOf(cookie, {}, group('a')),
  await service.idOf(cookie, {}, group('b')),
  await service.idOf(cookie, AT_RIVAL),
];

const COPIED_LINK_COUNT = 50;

/** A browser with copies of links of which 100 browsers have one already, each to a customer of another organization. */
async function browserWithCopies(beganIn: () => string): Promise<{ cookie: string; oldest: string }> {
  const visited = await new TestBrowser(service).visit(AT_RIVAL);
  const customer = await identitiesOf(service).findOneByOrFail({ entityId: visited.body.entity_id });
  const link = await links().findOneByOrFail({ entityId: customer.entityId });
  const prefix = `0-${randomUUID().slice(0, 24)}`;
  const copyIds = Array.from({ length: 99 }, (_, at) => `${prefix}-${10 + at}`);
  for (let at = 0; at < COPIED_LINK_COUNT; at++) {
    const its = { entityId: randomUUID(), organizationId: randomUUID() };
    await identitiesOf(service).insert({ ...customer, ...its });
    const copy = { ...link, ...its, beganIn: beganIn() };
    await links().insert([copy, ...copyIds.map((browserId) => ({ ...copy, browserId }))]);
  }
  return { cookie: cookieHeader(visited), oldest: copyIds.sort()[0] as string };
}

describe('protocol §5.6: a browser that remembers a customer', () => {
  it('has a new secret and leads to its earlier customers too, with any of its cookies', async () => {
    const { cookie, ids, secret } = await laptop();
    const moved = await newCustomer(service);
    const response = await remember(service, await moveOf(service, moved.access_token), { cookie });
    expect(secretOf(response)).not.toBe(secret);
    let pair = cookieHeader(response);
    for (const _round of [1, 2]) {
      expect(await idsOf(pair)).toEqual(ids);
      pair = cookieHeader(await service.visit(pair, AT_RIVAL));
      expect(await service.idOf(pair)).toBe(moved.entity_id);
    }
    expect((await service.visit(pair)).cookies.join()).toContain(secretOf(response));
  });

  it('adds nothing to the earlier pair, which leads where it led before', async () => {
    const { cookie, ids } = await laptop();
    const moved = await newCustomer(service);
    await rememberedPair(service, moved.access_token, cookie);
    expect(await idsOf(cookie)).toEqual(ids);
    const own = await service.idOf(cookie);
    expect(own).not.toBe(moved.entity_id);
    expect(await service.idOf(cookie)).toBe(own);
  });

  it('needs replace=true for another customer, and an identity_conflict does not redeem the code', async () => {
    const known = await service.post(TOKEN, cookieBody());
    const cookie = cookieHeader(known);
    const moved = await newCustomer(service);
    const move = await moveOf(service, moved.access_token);
    for (const body of [{}, { replace: false }]) {
      const conflict = await remember(service, move, { cookie, body });
      expectError(conflict, { status: 409, error: 'identity_conflict', hint: /^replace: / });
    }
    expect(await linksOf(service, moved.entity_id)).toEqual([]);
    const response = await remember(service, move, { cookie, body: { replace: true } });
    expect(response.status).toBe(200);
    expect(await service.idOf(cookieHeader(response))).toBe(moved.entity_id);
    expect(await service.idOf(cookie)).toBe(known.body.entity_id);
  });

  it('needs no replace for the customer that it has already, or for one of another group or organization', async () => {
    const known = await service.post(TOKEN, cookieBody());
    const cookie = cookieHeader(known);
    const pair = await rememberedPair(service, known.body.access_token, cookie);
    expect(await service.idOf(pair)).toBe(known.body.entity_id);
    const inGroup = (await service.post(group('a'), cookieBody())).body;
    const both = await rememberedPair(service, inGroup.access_token, pair);
    expect([await service.idOf(both), await service.idOf(both, {}, group('a'))]).toEqual([
      known.body.entity_id,
      inGroup.entity_id,
    ]);
  });

  it.each([
    ['half a pair', (cookie: string) => cookie.split('; ')[0] as string],
    ['a wrong secret', (cookie: string) => `${cookie.slice(0, -64)}${'0'.repeat(64)}`],
    ['garbage', () => '__svc_cid=x; __svc_cst=y'],
  ])('counts as one without customers if it sends %s', async (_, damage) => {
    const cookie = damage(cookieHeader(await service.post(TOKEN, cookieBody())));
    const moved = await newCustomer(service);
    expect(await service.idOf(await rememberedPair(service, moved.access_token, cookie))).toBe(moved.entity_id);
  });

  it('takes the 20 customers of an organization that were seen last, and leaves the others to the earlier pair', async () => {
    const browser = new TestBrowser(service);
    const clock = vi.spyOn(service.clock, 'now');
    const start = Date.now();
    const ids: string[] = [];
    for (let at = 0; at < 23; at++) {
      clock.mockReturnValue(start + (23 - at) * 86_400_000);
      ids.push((await browser.visit({}, group(`g${at}`))).body.entity_id);
    }
    clock.mockRestore();
    const pair = await rememberedPair(service, (await newCustomer(service)).access_token, browser.cookie);
    const at = (cookie: string | undefined, index: number) => service.idOf(cookie as string, {}, group(`g${index}`));
    expect([await at(pair, 0), await at(pair, 19)]).toEqual([ids[0], ids[19]]);
    for (const index of [20, 21, 22]) expect(await at(pair, index)).not.toBe(ids[index]);
    expect(await at(browser.cookie, 22)).toBe(ids[22]);
  });

  it('takes the customer of another organization, although groups of one organization were seen later', async () => {
    const browser = new TestBrowser(service);
    const clock = vi.spyOn(service.clock, 'now');
    clock.mockReturnValue(Date.now() - 86_400_000);
    const ofRival = (await browser.visit(AT_RIVAL)).body.entity_id;
    clock.mockRestore();
    for (let at = 0; at < 110; at++) await browser.visit({}, group(`h${at}`));
    const pair = await rememberedPair(service, (await newCustomer(service)).access_token, browser.cookie);
    expect(await service.idOf(pair, AT_RIVAL)).toBe(ofRival);
  });

  it('costs the same statements if each of its links began in another browser and copies replace the oldest', async () => {
    const statementsWith = async (beganIn: () => string) => {
      const { cookie, oldest } = await browserWithCopies(beganIn);
      const moved = await moveOf(service, (await newCustomer(service)).access_token);
      const statements = await statementsOf(service, () => remember(service, moved, { cookie }));
      expect(await links().countBy({ browserId: oldest, organizationId: IsNull() })).toBe(COPIED_LINK_COUNT);
      expect(await links().countBy({ browserId: oldest, organizationId: Not(IsNull()) })).toBe(0);
      return statements;
    };
    expect(await statementsWith(() => randomUUID())).toEqual(await statementsWith(() => 'one'));
  });

  it.each<[string, (token: string, agentPath: string) => Promise<unknown>]>([
    ['the token that created the transfer has ended', (token) => service.send('DELETE', '/v2/token', bearer(token))],
    [
      'the agent that created the transfer has got a new password',
      (_, path) => service.admin('PATCH', path, { password: 'another long password' }),
    ],
    ['the agent that created the transfer was deleted', (_, path) => service.admin('DELETE', path)],
  ])('takes no customer of the earlier browser whose link has ended because %s', async (_, end) => {
    const email = `agent-${randomUUID()}@acme.example`;
    const entry = { email, name: 'Agent', password: 'a long password', organization_id: ACME };
    const scopes = ['customers:own'];
    const agent = (await service.admin('POST', '/admin/agents', { ...entry, scopes })).body;
    const token = await issueAgentToken(service, { email });
    const { entity_id } = await newCustomer(service);
    const byAgent = await moveOf(service, token, { bearer_type: 'agent', customer_id: entity_id });
    const pair = cookieHeader(await remember(service, byAgent));
    const inGroup = async () => (await service.post(group('a'), cookieBody())).body.access_token;
    await rememberedPair(service, await inGroup(), pair);
    expect(await linksOf(service, entity_id), 'a link that has not ended is copied').toHaveLength(2);
    expect(await end(token, `/admin/agents/${agent.id}`)).toMatchObject({ status: 200 });
    await rememberedPair(service, await inGroup(), pair);
    expect(await linksOf(service, entity_id)).toHaveLength(2);
  });

  it('is one of 20 that race for one code, and the others leave no row', async () => {
    const moved = await newCustomer(service);
    const move = await moveOf(service, moved.access_token);
    const before = await identitiesOf(service).count();
    const browsersBefore = await browsers();
    delaySelects(service);
    const winner = winnerOf(await times(20, () => remember(service, move)));
    expect(await service.idOf(cookieHeader(winner))).toBe(moved.entity_id);
    expect(await linksOf(service, moved.entity_id)).toHaveLength(1);
    expect(await identitiesOf(service).count()).toBe(before);
    expect(await browsers()).toBe(browsersBefore + 1);
  });

  it('leads to its own customer after each of several codes that race into one browser', async () => {
    const { cookie, ids } = await laptop();
    const moved = await Promise.all([newCustomer(service), newCustomer(service), newCustomer(service)]);
    const moves = await Promise.all(moved.map(({ access_token }) => moveOf(service, access_token)));
    const responses = await Promise.all(moves.map((move) => remember(service, move, { cookie })));
    for (const [index, response] of responses.entries()) {
      expect(response.status).toBe(200);
      expect(await service.idOf(cookieHeader(response))).toBe(moved[index]?.entity_id);
      expect(await idsOf(cookieHeader(response))).toEqual(ids);
    }
  });
});

describe('protocol §3.10: a browser link', () => {
  const linked = async (token: string, more: object = {}) => {
    const move = await moveOf(service, token, more);
    const response = await remember(service, move);
    expect(response.status).toBe(200);
    return { move, response, pair: cookieHeader(response), id: response.body.entity_id as string };
  };
  it('leaves no ancestors in the database when a new customer replaces it', async () => {
    const before = await ancestors();
    const { access_token } = await newCustomer(service);
    const { pair, id } = await linked(access_token);
    expect(await ancestors()).toBeGreaterThan(before);
    await service.send('DELETE', TOKEN, bearer(access_token));
    const next = (await service.visit(pair)).body.entity_id;
    expect(next).not.toBe(id);
    expect(await service.idOf(pair), 'the new customer stays').toBe(next);
    expect(await ancestors()).toBe(before);
  });

  it('stores neither the secret nor a code', async () => {
    const { move, pair } = await linked((await newCustomer(service)).access_token);
    const stored = await everythingIn(service);
    expect(stored).not.toContain(pair.slice(-64));
    expect(stored).not.toContain(move.code);
  });
});
