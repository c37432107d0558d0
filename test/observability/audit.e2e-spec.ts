import { describe, expect, it } from 'vitest';
import type { AuditEntry } from '../../src/platform/audit/audit-event.js';
import { UUID } from '../../src/public/grant.js';
import { claimsOf, exchangeCode, refresh } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { AgentBrowser, codeOf, FOR_PUBLIC, implicitToken } from '../support/authorization-page.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stayOf } from '../support/customer-refresh.js';
import { manage } from '../support/management-api.js';
import { delaySelects } from '../support/statements.js';
import { ACME, ACME_AGENT, ACME_BACKEND, ACME_SITE, BACKEND_SECRET, PUBLIC_SITE } from '../support/test-registry.js';
import { ageRedemption, newCustomer, redeem, transferToken } from '../support/transfers.js';
import { ADMIN_TOKEN, serviceOfTest, useService } from '../support/use-service.js';

describe('the audit log', () => {
  const service = useService();

  const events = () => service.audit.map(({ event }) => event);
  const onlyEvent = (event: string): AuditEntry => {
    const found = service.audit.filter((entry) => entry.event === event);
    expect(found).toHaveLength(1);
    return found[0] as AuditEntry;
  };
  const customer = (id: string) => ({ kind: 'customer', id });

  it.each([
    ['X-Request-Id', { 'x-request-id': 'chosen-by-the-caller' }],
    ['traceparent', { traceparent: `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01` }],
  ])('has a request id of its own, even if two requests have the same %s', async (_name, headers) => {
    const responses = [
      await service.post(TOKEN, cookieBody(), headers),
      await service.post(TOKEN, cookieBody(), headers),
    ];
    expect(responses.map((response) => response.headers.get('x-request-id'))).not.toContain(null);
    const ids = new Set(service.audit.map(({ requestId }) => requestId));
    expect(ids.size).toBe(2);
    for (const id of ids) expect(id).toMatch(UUID);
  });

  it('records a new customer and its token, with the request id', async () => {
    const response = await service.post(TOKEN, cookieBody());
    const about = {
      outcome: 'success',
      subject: customer(response.body.entity_id),
      organizationId: ACME,
      clientId: ACME_SITE,
      grant: 'cookie',
      requestId: response.headers.get('x-request-id'),
    };
    expect(service.audit).toEqual([
      { event: 'identity.created', actor: { kind: 'browser' }, ...about },
      {
        event: 'token.issued',
        actor: { kind: 'customer' },
        ...about,
        details: { jti: claimsOf(response.body.access_token).jti },
      },
    ]);
  });

  it('records no new customer when a customer returns, and one when the first requests run in parallel', async () => {
    const first = await service.post(TOKEN, cookieBody());
    const cookie = cookieHeader(first);
    service.audit.length = 0;
    await service.post(TOKEN, cookieBody(), { cookie });
    expect(events()).toEqual(['token.issued']);
    const inGroup = () =>
      service.post(`/v2/customer/${ACME}/support/token`, cookieBody({ organization_id: undefined }), { cookie });
    await Promise.all(Array.from({ length: 10 }, inGroup));
    expect(events().filter((event) => event === 'identity.created')).toHaveLength(1);
  });

  it('records nothing for a request that is refused, or that changes nothing as the operator', async () => {
    await service.admin('GET', '/admin/clients');
    await service.post(TOKEN, cookieBody({ client_id: 'nobody' }));
    await service.post(TOKEN, '{');
    await service.send('GET', '/v2/customer/info', bearer('dev:x.y.z'));
    expect(service.audit).toEqual([]);
  });

  it('records that a transfer token was issued, redeemed and replayed', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const code = await transferToken(service, access_token);
    const redeemed = await redeem(service, code);
    await ageRedemption(service, code, 3);
    await redeem(service, code);
    const { sid: session } = claimsOf(redeemed.body.access_token);
    const details = { session };
    const about = { actor: { kind: 'client', id: ACME_SITE }, subject: customer(entity_id), organizationId: ACME };
    expect(onlyEvent('transfer_token.issued')).toMatchObject({ outcome: 'success', ...about });
    expect(onlyEvent('transfer_token.redeemed')).toMatchObject({ outcome: 'success', ...about, details });
    expect(onlyEvent('transfer_token.replayed')).toMatchObject({ outcome: 'failure', ...about, details });
    for (const event of ['redeemed', 'replayed']) expect(onlyEvent(`transfer_token.${event}`).details).toEqual(details);
  });

  it('records that a customer’s refresh token was issued, used and used again, with the id of its session', async () => {
    const refreshing = await serviceOfTest({ registry: refreshingRegistry() });
    const { entity_id, access_token, refresh_token } = await stayOf(refreshing);
    const next = (await refreshCustomer(refreshing, refresh_token)).body.refresh_token;
    await refreshCustomer(refreshing, next);
    await refreshCustomer(refreshing, refresh_token);
    const found = refreshing.audit.filter(({ event }) => event.startsWith('refresh_token.'));
    expect(found.map(({ event }) => event.split('.')[1])).toEqual(['issued', 'redeemed', 'redeemed', 'replayed']);
    const about = { actor: { kind: 'client', id: ACME_SITE }, subject: customer(entity_id), organizationId: ACME };
    for (const entry of found)
      expect(entry).toMatchObject({ ...about, details: { session: claimsOf(access_token).sid } });
    expect(found.map(({ outcome }) => outcome)).toEqual(['success', 'success', 'success', 'failure']);
  });

  it('records an agent’s sign-in, consent, code, tokens, refresh, refresh token reuse and sign-out', async () => {
    const browser = new AgentBrowser(service);
    const code = await codeOf(browser);
    const pair = await exchangeCode(service, code);
    const agent = { kind: 'agent', id: pair.body.account_id };
    expect(onlyEvent('sign_in.succeeded')).toMatchObject({ actor: agent, subject: agent, organizationId: ACME });
    expect(onlyEvent('authorization_code.issued')).toMatchObject({ subject: agent, clientId: ACME_BACKEND });
    expect(onlyEvent('authorization_code.redeemed')).toMatchObject({ subject: agent, grant: 'authorization_code' });
    expect(onlyEvent('token.issued')).toMatchObject({
      actor: agent,
      grant: 'authorization_code',
      clientId: ACME_BACKEND,
    });
    const next = await refresh(service, pair.body.refresh_token);
    expect(onlyEvent('refresh_token.redeemed')).toMatchObject({ subject: agent, outcome: 'success' });
    await refresh(service, next.body.refresh_token);
    await refresh(service, pair.body.refresh_token);
    expect(onlyEvent('refresh_token.replayed')).toMatchObject({ subject: agent, outcome: 'failure' });
    const page = await browser.open(FOR_PUBLIC);
    await browser.submit(page, { decision: 'allow' }, '/consent');
    expect(onlyEvent('consent.given')).toMatchObject({ actor: agent, clientId: PUBLIC_SITE });
  });

  it('records a failed sign-in with the IP address, and without an agent id if the email is unknown', async () => {
    const browser = new AgentBrowser(service);
    await browser.signIn({ ...ACME_AGENT, password: 'wrong' });
    expect(onlyEvent('sign_in.failed')).toMatchObject({
      outcome: 'failure',
      subject: { kind: 'agent', id: expect.stringMatching(/^[0-9a-f-]{36}$/) },
      details: { ip: '127.0.0.1' },
    });
    service.audit.length = 0;
    await browser.signIn({ email: 'nobody@acme.example', password: 'wrong' });
    expect(onlyEvent('sign_in.failed').actor).toEqual({ kind: 'agent' });
    expect(onlyEvent('sign_in.failed').subject).toBeUndefined();
  });

  it.each(['customer', 'agent', 'client', 'operator'])('records who revoked a token: %s', async (kind) => {
    const { access_token, entity_id } = await newCustomer(service);
    const agentToken = await implicitToken(service);
    const pair = await exchangeCode(service, await codeOf(new AgentBrowser(service)));
    service.audit.length = 0;
    const revoke = (headers: Record<string, string>, token: string) =>
      manage(service, 'POST', '/oauth2/revoke', headers, { token });
    if (kind === 'customer') await service.send('DELETE', '/v2/customer/token', bearer(access_token));
    if (kind === 'agent') await service.send('DELETE', '/v2/token', bearer(agentToken));
    if (kind === 'client') await revoke(basic(ACME_BACKEND, BACKEND_SECRET), pair.body.access_token);
    if (kind === 'operator') await revoke(bearer(ADMIN_TOKEN), access_token);
    const id = { customer: entity_id, agent: claimsOf(agentToken).sub, client: ACME_BACKEND }[kind];
    expect(onlyEvent('token.revoked')).toMatchObject({
      actor: { kind, ...(id !== undefined && { id }) },
      subject: { kind: 'token' },
    });
  });

  it('records the end of a token once, if two requests end it', async () => {
    const [own, revoked] = [await newCustomer(service), await newCustomer(service)];
    const pair = await exchangeCode(service, await codeOf(new AgentBrowser(service)));
    const revoke = (token: string) => manage(service, 'POST', '/oauth2/revoke', bearer(ADMIN_TOKEN), { token });
    service.audit.length = 0;
    delaySelects(service);
    for (const end of [
      () => service.send('DELETE', '/v2/customer/token', bearer(own.access_token)),
      () => revoke(revoked.access_token),
      () => revoke(pair.body.access_token),
      () => revoke(pair.body.refresh_token),
    ]) {
      expect(await Promise.all([end(), end()])).toMatchObject([{ status: 200 }, { status: 200 }]);
      onlyEvent('token.revoked');
      service.audit.length = 0;
    }
  });
});
