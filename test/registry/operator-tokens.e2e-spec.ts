import { beforeEach, describe, expect, it } from 'vitest';
import { basic, bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectInvalidToken } from '../support/expect-error.js';
import { browserIdOf, secretOf } from '../support/identities.js';
import { manage } from '../support/management-api.js';
import { times } from '../support/races.js';
import { exchange, rawRequest } from '../support/raw-http.js';
import { ACME } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';
import { useService } from '../support/use-service.js';

const ALICE = 'token-of-alice-with-32-characters-or-more';
const NEXT = 'next-token-of-alice-with-32-characters:or-more';
const WRONG = 'MARKED-token-that-no-operator-has-1234567890';
const ADMIN_TOKENS = `alice:all:${ALICE},\n alice-2:all:${NEXT}\n`;

const service = useService({ environment: { ADMIN_TOKENS, TRUST_PROXY: '1' } });

const lastEvent = () => service.audit.at(-1);

it('the name of an admin token is the actor of each change in the audit', async () => {
  const tokens = { alice: ALICE, 'alice-2': NEXT };
  for (const [name, token] of Object.entries(tokens)) {
    const actor = { kind: 'operator', id: name };
    const admin = (method: string, path: string, body?: object) =>
      manage(service, method, `/admin/${path}`, bearer(token), body);
    const client_id = `of-${name}`;
    const client = { client_id, name: 'X', client_type: 'server', organization_id: ACME };
    const expectActor = (event: string) => {
      expect(lastEvent()?.event).toBe(event);
      expect(lastEvent()?.actor).toEqual(actor);
    };
    expect((await admin('POST', 'clients', client)).status).toBe(201);
    expectActor('registry.changed');
    await admin('POST', `clients/${client_id}/secret`);
    expectActor('registry.changed');
    await admin('DELETE', `clients/${client_id}`);
    expectActor('registry.changed');
    const response = await service.post(TOKEN, cookieBody());
    const { body } = response;
    await manage(service, 'POST', '/oauth2/revoke', bearer(token), { token: body.access_token });
    expectActor('token.revoked');
    const browserId = browserIdOf(secretOf(response));
    await admin('DELETE', `customers/${body.entity_id}/browsers/${browserId}`);
    expectActor('browser.ended');
    await admin('DELETE', `customers/${body.entity_id}`);
    expectActor('identity.erased');
    expect(JSON.stringify(service.audit)).not.toContain(token);
  }
});

describe('a failed authentication of the operator', () => {
  const eventsIn = ({ audit }: TestService, isIncluded: (ip: string) => boolean = () => true) =>
    audit
      .filter(({ event }) => event === 'admin.authentication_failed')
      .filter(({ details }) => isIncluded(String(details?.ip)));
  const fail = (ip: string, path = '/admin/clients', headers: Record<string, string> = bearer(WRONG)) =>
    manage(service, 'GET', path, { ...headers, 'x-forwarded-for': ip });
  beforeEach(() => {
    service.audit.length = 0;
  });

  it.each([
    ['a wrong token', '192.0.2.11', bearer(WRONG), 'not an admin token'],
    ['no Authorization header', '192.0.2.12', {}, 'no Authorization header'],
    ['a token in Basic credentials', '192.0.2.13', basic('x', ALICE), 'no bearer token'],
    ['two tokens in one header', '192.0.2.14', bearer(`${ALICE} ${WRONG}`), 'no bearer token'],
  ])('with %s is audited with the IP address, the route and the reason, and no credentials', async (...parameters) => {
    const [, ip, sent, reason] = parameters;
    const response = await fail(ip, '/admin/customers/MARKED-id?MARKED=1', sent);
    expectInvalidToken(response);
    expect(service.audit).toEqual([
      {
        event: 'admin.authentication_failed',
        outcome: 'failure',
        actor: { kind: 'operator' },
        reason,
        details: { ip, route: '/admin/customers/:entity_id' },
        requestId: response.headers.get('x-request-id'),
      },
    ]);
  });

  it('is a request with two Authorization headers, even if the first has a valid token', async () => {
    const lines = [`Authorization: Bearer ${ALICE}`, `Authorization: Bearer ${WRONG}`, 'X-Forwarded-For: 192.0.2.15'];
    const response = await exchange(service.managementUrl, rawRequest('GET /admin/clients', '', lines));
    expect(response.status).toBe(401);
    expect(lastEvent()).toMatchObject({ reason: 'more than one Authorization header' });
  });

  it('at introspection, revocation and the revocation feed is audited too, as they accept the same tokens', async () => {
    const routes = {
      '192.0.2.21': ['POST', '/oauth2/introspect'],
      '192.0.2.22': ['POST', '/oauth2/revoke'],
      '192.0.2.23': ['GET', '/oauth2/revocations'],
    } as const;
    for (const [ip, [method, route]] of Object.entries(routes)) {
      const sent = { ...bearer(WRONG), 'x-forwarded-for': ip };
      expect((await manage(service, method, route, sent)).status).toBe(401);
      expect(lastEvent()).toMatchObject({ event: 'admin.authentication_failed', details: { ip, route } });
    }
    service.audit.length = 0;
    await manage(service, 'POST', '/oauth2/introspect', basic('nobody', 'wrong'), { token: 'x' });
    expect(service.audit).toEqual([]);
  });

  it('that is repeated within a minute gets no further event, and one after the minute', async () => {
    const events = () => eventsIn(service, (ip) => ip === '192.0.2.2');
    await times(50, () => fail('192.0.2.2'));
    service.clock.advance({ seconds: 59 });
    await fail('192.0.2.2', '/admin/agents', {});
    expect(events()).toHaveLength(1);
    service.clock.advance({ seconds: 1 });
    await fail('192.0.2.2', '/admin/agents', {});
    expect(events()).toHaveLength(2);
    expect(lastEvent()).toMatchObject({ reason: 'no Authorization header', details: { route: '/admin/agents' } });
  });

  it('gets an event after the clock was set back, too', async () => {
    const events = () => eventsIn(service, (ip) => ip === '192.0.2.3');
    await fail('192.0.2.3');
    service.clock.advance({ seconds: -3_600 });
    await fail('192.0.2.3');
    expect(events()).toHaveLength(2);
  });

  it('is counted by network: an IPv6 /64 is one network', async () => {
    for (let at = 0; at < 20; at++) await fail(`2001:db8:1:2::${at.toString(16)}`);
    const events = () => eventsIn(service, (ip) => ip.startsWith('2001:'));
    expect(events()).toHaveLength(1);
    await fail('2001:db8:1:3::1');
    expect(events()).toHaveLength(2);
  });

  it('from more than 1,000 networks in a minute gets one event for all further networks', async () => {
    const flooded = await startTestService({ environment: { ADMIN_TOKENS, TRUST_PROXY: '1' } });
    const failFrom = (ip: string) =>
      manage(flooded, 'GET', '/admin/clients', { ...bearer(WRONG), 'x-forwarded-for': ip });
    for (let at = 0; at < 1_050; at += 50) await times(50, (n) => failFrom(`10.1.${(at + n) >> 8}.${(at + n) & 255}`));
    expect(eventsIn(flooded)).toHaveLength(1_001);
    flooded.clock.advance({ seconds: 61 });
    await failFrom('10.2.0.1');
    expect(eventsIn(flooded)).toHaveLength(1_002);
    await flooded.stop();
    expect(JSON.stringify(flooded.audit)).not.toContain('MARKED');
  });
});
