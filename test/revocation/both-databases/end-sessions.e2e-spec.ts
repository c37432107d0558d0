import { randomUUID } from 'node:crypto';
import { ServiceUnavailableException } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { Browser } from '../../../src/session/browser.entity.js';
import { Browsers } from '../../../src/session/browsers.js';
import { Session } from '../../../src/session/session.entity.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { refreshingRegistry } from '../../support/customer-refresh.js';
import { END_SESSIONS, endSessions, endSessionsAsOperator } from '../../support/end-sessions.js';
import { expectError, expectInvalidGrant, expectInvalidRequest, expectLimited } from '../../support/expect-error.js';
import { identitiesOf, secretOf } from '../../support/identities.js';
import { beginWindow } from '../../support/limit-windows.js';
import { metricOf } from '../../support/management-api.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { moveOf, remember, rememberedPair, transferredSessionsOf } from '../../support/remember.js';
import {
  ACME,
  ACME_ORIGIN,
  ACME_SITE,
  AT_RIVAL,
  changed,
  PUBLIC_ORIGIN,
  PUBLIC_SITE,
  RIVAL_ORIGIN,
  UNKNOWN_CUSTOMER,
} from '../../support/test-registry.js';
import { infoStatus, newCustomer, redeem, sessionsIn, transferToken } from '../../support/transfers.js';
import { ADMIN_TOKEN, serviceOfTest, useService } from '../../support/use-service.js';

const HINT = 'browsers: needs the identity cookies of a browser that got the customer without a transfer';
const BROWSERS = { browsers: true };

const registry = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
registry.clients = changed(registry.clients, [PUBLIC_SITE], { grants: { identity_token: { remember: ['browser'] } } });
const service = useService({ registry });
let agent: string;
beforeAll(async () => {
  agent = await issueAgentToken(service);
});

const asOperator = (entityId: string, body?: object) => endSessionsAsOperator(service, ADMIN_TOKEN, entityId, body);
/** A browser with a customer of its own. */
const newVisitor = async () => {
  const response = await service.visit();
  return { ...(response.body as { entity_id: string; access_token: string }), cookie: cookieHeader(response) };
};
/** The cookies of a browser that is made from another one for a customer of another organization. */
async function copyOf(cookie: string): Promise<string> {
  const of = { client_id: PUBLIC_SITE };
  const { access_token } = (await service.visit(undefined, AT_RIVAL)).body;
  const move = await moveOf(service, access_token, of);
  return cookieHeader(await remember(service, move, { cookie, body: of, headers: { origin: PUBLIC_ORIGIN } }));
}

/** The id and the secret of a browser. */
const partsOf = (secret: string) => secret.slice(0, 96);
const secretIn = (cookie: string) => partsOf(/__svc_cst=(\w+)/.exec(cookie)?.[1] as string);
/** Lets the transaction that ends the sessions fail once, after its other statements. */
function failAtTheEnd(): void {
  const browsers = service.application.get(Browsers);
  vi.spyOn(browsers, 'deleteUnusedIn').mockRejectedValueOnce(new ServiceUnavailableException());
}

describe('protocol §4.14: who may end the sessions of a customer', () => {
  it('does not depend on the clocks of the processes, which may differ by 30 s', async () => {
    const fast = await serviceOfTest({ registry, database: service.database });
    for (const seconds of [30, -30]) {
      fast.clock.reset();
      fast.clock.advance({ seconds });
      for (const [one, other] of [
        [service, fast],
        [fast, service],
      ] as const) {
        const first = await one.post(TOKEN, cookieBody());
        const code = await transferToken(one, first.body.access_token);
        const cookie = cookieHeader(first);
        expect((await endSessions(other, first.body.access_token)).status).toBe(200);
        for (const each of [one, other]) {
          expect(await infoStatus(each, first.body.access_token)).toBe(401);
          const next = await each.post(TOKEN, cookieBody(), { cookie });
          for (const reader of [one, other]) expect(await infoStatus(reader, next.body.access_token)).toBe(200);
        }
        expectInvalidGrant(await redeem(one, code));
      }
    }
  });

  it.each<[string, object, RegExp]>([
    [
      'another customer_id',
      { customer_id: UNKNOWN_CUSTOMER },
      /^customer_id: must be the customer of the bearer token/,
    ],
    ['a customer_id that is no UUID', { customer_id: 'x' }, /^customer_id: must be a UUID/],
    ['browsers as a string', { browsers: 'true' }, /^browsers: must be a boolean/],
    ['an empty customer_id', { customer_id: '' }, /^customer_id: must not be empty/],
  ])('a customer token with %s is rejected and ends nothing', async (_, body, hint) => {
    const { access_token } = await newCustomer(service);
    expectInvalidRequest(await endSessions(service, access_token, body), hint);
    expect(await infoStatus(service, access_token)).toBe(200);
  });

  it('a customer may send its own customer_id, or an empty body', async () => {
    for (const body of ['', 'own']) {
      const { entity_id, access_token } = await newCustomer(service);
      const sent = body === '' ? body : JSON.stringify({ customer_id: entity_id });
      const response = await service.post(END_SESSIONS, sent, bearer(access_token));
      expect(response).toMatchObject({ status: 200, body: {} });
      expect(await infoStatus(service, access_token)).toBe(401);
    }
  });

  it('a present Origin must belong to the client of the token', async () => {
    const { access_token } = await newCustomer(service);
    expectInvalidRequest(await endSessions(service, access_token, {}, { origin: RIVAL_ORIGIN }), /^Origin: /);
    expect(await infoStatus(service, access_token)).toBe(200);
    const response = await endSessions(service, access_token, {}, { origin: ACME_ORIGIN });
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe(ACME_ORIGIN);
    expect(response.headers.get('access-control-allow-credentials')).toBe('true');
  });

  it('the operator gets 404 for an erased customer, which stays erased', async () => {
    const { entity_id } = await newCustomer(service);
    await service.erase(entity_id);
    expectError(await asOperator(entity_id), { status: 404, error: 'not_found', hint: undefined });
    expect(await identitiesOf(service).findOneBy({ entityId: entity_id })).toBeNull();
  });

  it('the requests count against the limit tokens of the client', async () => {
    const limited = await serviceOfTest({ environment: { RATE_LIMIT: 'tokens=2/60' } });
    beginWindow(limited);
    const { access_token } = await newCustomer(limited);
    const first = await endSessions(limited, access_token, { customer_id: UNKNOWN_CUSTOMER });
    expect(first.status).toBe(400);
    const response = await endSessions(limited, access_token);
    expectLimited(response);
    expect(await infoStatus(limited, access_token)).toBe(200);
  });

  it('the audit log and a metric name the kind of the actor', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    await endSessions(service, access_token);
    const byAgent = (await service.post(TOKEN, agentTokenBody({ entity_id }), bearer(agent))).body.access_token;
    expect(await infoStatus(service, byAgent)).toBe(200);
    await endSessions(service, agent, { customer_id: entity_id, browsers: true });
    expect(await infoStatus(service, byAgent)).toBe(401);
    await asOperator(entity_id);
    const events = service.audit.filter(
      ({ event, subject }) => event === 'sessions.ended' && subject?.id === entity_id,
    );
    expect(events.map(({ actor }) => actor.kind)).toEqual(['customer', 'agent', 'operator']);
    expect(events[0]).toMatchObject({ actor: { id: entity_id }, clientId: ACME_SITE, details: { browsers: false } });
    expect(events[1]).toMatchObject({ outcome: 'success', organizationId: ACME, details: { browsers: true } });
    for (const kind of ['customer', 'agent', 'operator'])
      expect(await metricOf(service, `cas_sessions_ended_total{actor="${kind}"}`)).toBeGreaterThan(0);
  });
});

describe('protocol §4.14: end_sessions with browsers: true', () => {
  it('ends the secret of a browser without other customers, so a copy of its cookies leads to no customer', async () => {
    const victim = await newVisitor();
    await endSessions(service, victim.access_token, BROWSERS, { cookie: victim.cookie });
    const next = await service.visit(victim.cookie);
    expect(partsOf(secretOf(next))).not.toBe(secretIn(victim.cookie));
    expect(await service.idOf(victim.cookie)).not.toBe(next.body.entity_id);
  });

  it('accepts a request with several valid pairs if one of them leads to the customer', async () => {
    const both = [await newVisitor(), await newVisitor()];
    const cookie = both.map((each) => each.cookie).join('; ');
    for (const { access_token } of both)
      expect((await endSessions(service, access_token, BROWSERS, { cookie })).status).toBe(200);
  });

  it.each<[string, (own: string, other: string) => string | undefined]>([
    ['no cookies', () => undefined],
    ['the cookies of another browser', (_, other) => other],
    ['half a pair', (own) => own.split('; ')[0]],
    ['an id with the secret of another browser', (own, other) => `${own.split('; ')[0]}; ${other.split('; ')[1]}`],
  ])('is refused with %s for a customer token, and ends nothing', async (_, cookieOf) => {
    const known = await newVisitor();
    const cookie = cookieOf(known.cookie, (await newVisitor()).cookie);
    expectInvalidRequest(await endSessions(service, known.access_token, BROWSERS, cookie ? { cookie } : {}), HINT);
    expect(await infoStatus(service, known.access_token)).toBe(200);
    expect(await service.idOf(known.cookie)).toBe(known.entity_id);
  });

  it('needs no cookies if no browser leads to the customer in another way than by a transfer', async () => {
    const byAgent = (await service.post(TOKEN, agentTokenBody(), bearer(agent))).body;
    const pair = await rememberedPair(service, byAgent.access_token);
    const visitor = await newVisitor();
    await service.idOf(visitor.cookie, AT_RIVAL);
    const forgotten = { client_id: ACME_SITE, organization_id: ACME };
    await service.post('/v2/customer/forget', forgotten, { cookie: visitor.cookie, origin: ACME_ORIGIN });
    for (const { access_token } of [byAgent, visitor]) {
      expect((await endSessions(service, access_token, BROWSERS)).status).toBe(200);
      expect(await infoStatus(service, access_token)).toBe(401);
    }
    expect(await service.idOf(pair)).not.toBe(byAgent.entity_id);
  });

  it('ends a browser that a thief made with a stolen token, at any depth, and what the thief made with the browser', async () => {
    const victim = await newVisitor();
    const { entity_id, access_token } = victim;
    const first = await rememberedPair(service, access_token);
    const second = await rememberedPair(service, (await service.visit(first)).body.access_token);
    const copied = await copyOf(second);
    const ofThief = (await service.visit(copied)).body;
    expect(ofThief.entity_id).toBe(entity_id);
    const code = await moveOf(service, ofThief.access_token);
    expect((await endSessions(service, access_token)).status).toBe(200);
    expect(await infoStatus(service, ofThief.access_token)).toBe(401);
    expect((await remember(service, code)).status).toBe(400);
    for (const cookie of [first, second, copied]) expect(await service.idOf(cookie)).not.toBe(entity_id);
    expect(await service.idOf(victim.cookie)).toBe(entity_id);
  });

  it('is refused with a pair that came from a transfer, so that a thief cannot end the browsers of the victim', async () => {
    const victim = await newVisitor();
    const { entity_id, access_token } = victim;
    const cookie = await rememberedPair(service, access_token);
    expectInvalidRequest(await endSessions(service, access_token, BROWSERS, { cookie }), HINT);
    const copy = await copyOf(cookie);
    expect(await service.idOf(copy)).toBe(entity_id);
    expectInvalidRequest(await endSessions(service, access_token, BROWSERS, { cookie: copy }), HINT);
    expect(await infoStatus(service, access_token)).toBe(200);
    expect(await service.idOf(victim.cookie)).toBe(entity_id);
  });

  it('ends nothing if its transaction fails, and everything if it is repeated', async () => {
    const { entity_id, access_token, cookie: own } = await newVisitor();
    const pair = await rememberedPair(service, access_token);
    failAtTheEnd();
    expect((await asOperator(entity_id, BROWSERS)).status).toBe(503);
    expect(await infoStatus(service, access_token)).toBe(200);
    for (const cookie of [own, pair]) expect(await service.idOf(cookie)).toBe(entity_id);
    expect((await asOperator(entity_id, BROWSERS)).status).toBe(200);
    expect(await infoStatus(service, access_token)).toBe(401);
    for (const cookie of [own, pair]) {
      const next = await service.visit(cookie);
      expect(next.body.entity_id).not.toBe(entity_id);
      expect(partsOf(secretOf(next)), 'a copy of the cookies does not lead to the next customer').not.toBe(
        secretIn(cookie),
      );
      expect(await service.idOf(cookie)).not.toBe(next.body.entity_id);
    }
    expect(await sessionsIn(service).countBy({ customerId: entity_id })).toBe(0);
  });

  it('leaves a browser its secret and its customer of another organization', async () => {
    const known = await newVisitor();
    const { cookie } = known;
    const ofRival = await service.idOf(cookie, AT_RIVAL);
    expect((await asOperator(known.entity_id, BROWSERS)).status).toBe(200);
    const next = await service.visit(cookie);
    expect(next.body.entity_id).not.toBe(known.entity_id);
    expect([partsOf(secretOf(next)), await service.idOf(cookie, AT_RIVAL)]).toEqual([secretIn(cookie), ofRival]);
  });

  it('costs a few statements, although a thief has made many browsers', async () => {
    const { entity_id, access_token } = await newVisitor();
    await rememberedPair(service, access_token);
    const { manager } = service.application.get(DataSource);
    const ids: string[] = Array.from({ length: 60 }, () => randomUUID());
    const browsers = ids.map((browserId) => ({ browserId, secretHash: browserId, version: 0 }));
    await manager.insert(Browser, browsers);
    const [session] = (await transferredSessionsOf(service, entity_id)) as [Session];
    const sessions = ids.map((browserId) => ({ ...session, id: browserId, browserId, codeHash: browserId }));
    await manager.insert(Session, sessions);
    const logged = vi.spyOn(service.application.get(DataSource).logger, 'logQuery');
    expect((await asOperator(entity_id, BROWSERS)).status).toBe(200);
    const statements = logged.mock.calls.filter(([sql]) => !/revocation_feed/.test(sql));
    const selects = statements.filter(([sql]) => /^\s*SELECT/.test(sql));
    logged.mockRestore();
    expect(selects.length).toBeLessThan(5);
    expect(statements.length).toBeLessThan(17);
    expect(await sessionsIn(service).countBy({ customerId: entity_id })).toBe(0);
    expect((await manager.find(Browser)).filter(({ browserId }) => ids.includes(browserId))).toEqual([]);
  });
});
