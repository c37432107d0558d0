import { describe, expect, it, vi } from 'vitest';
import { Browsers } from '../../src/session/browsers.js';
import { askToken, exchangeCode } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { AgentBrowser, codeOf, implicitToken } from '../support/authorization-page.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { manage } from '../support/management-api.js';
import { ACME_AGENT, BACKEND_SECRET } from '../support/test-registry.js';
import { ageRedemption, newCustomer, redeem, transferToken } from '../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../support/use-service.js';

const MARKER = 'MARKEDSECRET';

const SAMPLE =
  /^([a-zA-Z_:][\w:]*)(\{(?:[a-z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (-?[\d.]+(?:e[+-]?\d+)?|[+-]Inf|NaN)$/;

describe('/metrics on the management port', () => {
  const service = useService();

  const scrape = async () => (await manage(service, 'GET', '/metrics')).text;

  async function samples(): Promise<Map<string, number>> {
    const lines = (await scrape()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return new Map(
      lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
    );
  }

  /** The increase of a sample while the work runs. */
  async function rise(name: string, work: () => Promise<unknown>): Promise<number> {
    const before = (await samples()).get(name) ?? 0;
    await work();
    return ((await samples()).get(name) ?? 0) - before;
  }

  const introspect = (token: string) => manage(service, 'POST', '/oauth2/introspect', bearer(ADMIN_TOKEN), { token });

  it('is valid Prometheus text, with a type and a help text for each metric', async () => {
    const response = await manage(service, 'GET', '/metrics');
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    for (const line of response.text.split('\n').filter(Boolean))
      expect(line).toMatch(line.startsWith('#') ? /^# (HELP|TYPE) / : SAMPLE);
    expect((await service.send('GET', '/metrics')).status).toBe(404);
  });

  it.each([
    ['cas_tokens_issued_total{grant="cookie"}', async () => newCustomer(service)],
    ['cas_identities_created_total{grant="cookie"}', async () => newCustomer(service)],
    ['cas_tokens_issued_total{grant="implicit"}', async () => implicitToken(service)],
    ['cas_sign_ins_total{outcome="succeeded"}', async () => implicitToken(service)],
    [
      'cas_sign_ins_total{outcome="failed"}',
      async () => new AgentBrowser(service).signIn({ ...ACME_AGENT, password: 'wrong' }),
    ],
    [
      'cas_code_redemptions_total{kind="transfer_token",outcome="redeemed"}',
      async () => redeem(service, await transferToken(service, (await newCustomer(service)).access_token)),
    ],
    [
      'cas_code_redemptions_total{kind="transfer_token",outcome="replayed"}',
      async () => {
        const code = await transferToken(service, (await newCustomer(service)).access_token);
        await redeem(service, code);
        await ageRedemption(service, code, 3);
        await redeem(service, code);
      },
    ],
    [
      'cas_code_redemptions_total{kind="authorization_code",outcome="redeemed"}',
      async () => exchangeCode(service, await codeOf(new AgentBrowser(service))),
    ],
    [
      'cas_revocations_total{actor="customer"}',
      async () => service.send('DELETE', '/v2/customer/token', bearer((await newCustomer(service)).access_token)),
    ],
    [
      'cas_introspections_total{active="true",reason=""}',
      async () => introspect((await newCustomer(service)).access_token),
    ],
    ['cas_introspections_total{active="false",reason="malformed"}', async () => introspect('no token')],
    [
      'http_requests_total{surface="public",method="POST",route="/v2/customer/token",grant="cookie",status="200"}',
      async () => newCustomer(service),
    ],
    [
      'http_requests_total{surface="public",method="POST",route="/v2/customer/token",grant="",status="400"}',
      async () => service.post(TOKEN, '{'),
    ],
    [
      'http_request_duration_seconds_count{surface="public",route="/v2/customer/token",grant="cookie"}',
      async () => newCustomer(service),
    ],
    [
      'http_requests_total{surface="public",method="PUT",route="none",grant="",status="405"}',
      async () => service.send('PUT', TOKEN),
    ],
  ])('raises %s by 1 for one such event', async (name, work) => {
    expect(await rise(name, work)).toBe(1);
  });

  it('measures the duration of a request in seconds', async () => {
    const name = 'http_request_duration_seconds_sum{surface="public",route="/v2/customer/token",grant="cookie"}';
    let nowMs = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const browsers = service.application.get(Browsers);
    const insert = browsers.insertVisitor.bind(browsers);
    vi.spyOn(browsers, 'insertVisitor').mockImplementation((visitor) => {
      nowMs += 1_500;
      return insert(visitor);
    });
    expect(await rise(name, () => newCustomer(service))).toBeCloseTo(1.5);
  });

  it('counts one statement for a new customer', async () => {
    const name = 'cas_database_statements_total{outcome="done"}';
    const rises: number[] = [];
    for (let customers = 0; customers < 5; customers += 1) rises.push(await rise(name, () => newCustomer(service)));
    // The service also sends statements that no request causes, about one a second.
    expect(Math.min(...rises)).toBe(1);
  });

  it('shows the database pool, the registry, the event loop, the log and the signing keys', async () => {
    const now = await samples();
    expect(now.get('cas_database_connections_limit')).toBe(0);
    expect(now.get('cas_database_waiting')).toBe(0);
    expect(now.get('cas_registry_age_seconds')).toBeLessThan(60);
    expect(now.get('cas_registry_revision')).toBeGreaterThan(0);
    expect(now.get('cas_log_lines_lost_total')).toBe(0);
    expect(now.get('cas_signing_keys{state="signing"}')).toBe(1);
    expect(now.get('cas_file_invalid{file="SIGNING_KEYS_FILE"}')).toBe(0);
    expect(now.has('nodejs_eventloop_lag_p99_seconds')).toBe(true);
    expect(Math.abs(now.get('cas_clock_offset_seconds') ?? Number.NaN)).toBeLessThan(30);
  });

  it('has no more samples after 500 hostile requests, because label values never come from callers', async () => {
    const hostile = async (n: number) => {
      await service.post(`/v2/customer/${n}/${n}/token`, cookieBody({ grant_type: 'cookie' }));
      await service.post(TOKEN, cookieBody({ client_id: `client-${n}`, grant_type: `grant-${n}` }));
      await service.send(n % 2 ? 'PATCH' : 'REPORT', `/path-${n}`);
      await manage(service, 'GET', `/admin/customers/${n}`);
      await service.post('/v2/token', { grant_type: `grant-${n}` });
      await introspect(`token-${n}`);
    };
    await hostile(0);
    await hostile(1);
    // Node.js adds samples when something happens for the first time, such as a kind of garbage collection.
    const serviceSamples = async () => [...(await samples()).keys()].filter((name) => name.startsWith('cas_'));
    const before = await serviceSamples();
    for (let n = 2; n < 100; n++) await hostile(n);
    expect(await serviceSamples()).toEqual(before);
  });

  it('responds under load, and no request fails because of a scrape', async () => {
    const load = Array.from({ length: 300 }, () => service.post(TOKEN, cookieBody()));
    const scrapes = await Promise.all(Array.from({ length: 10 }, () => manage(service, 'GET', '/metrics')));
    expect(new Set(scrapes.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set((await Promise.all(load)).map(({ status }) => status))).toEqual(new Set([200]));
  });

  it('contains no secret, id or other value that a caller sends', async () => {
    const customer = await newCustomer(service);
    const code = await transferToken(service, customer.access_token);
    await redeem(service, code);
    await redeem(service, code);
    const fields = {
      client_id: MARKER,
      client_secret: MARKER,
      grant_type: MARKER,
      code: MARKER,
      refresh_token: MARKER,
    };
    await askToken(service, fields);
    await askToken(service, { grant_type: 'refresh_token', refresh_token: MARKER });
    await service.post(`${TOKEN}?secret=${MARKER}`, cookieBody({ client_id: MARKER, [MARKER]: MARKER }), {
      origin: MARKER,
    });
    await service.post(TOKEN, MARKER, { cookie: `__svc_cid=${MARKER}; __svc_cst=${MARKER}`, 'user-agent': MARKER });
    await service.send(MARKER, `/${MARKER}`, { 'x-request-id': MARKER, 'x-forwarded-for': MARKER });
    for (const headers of [bearer(MARKER), basic(MARKER, MARKER)]) {
      await service.send('GET', '/v2/customer/info', headers);
      await manage(service, 'POST', '/oauth2/introspect', headers, { token: MARKER });
      await manage(service, 'GET', `/admin/customers/${MARKER}`, headers);
    }
    const text = await scrape();
    const secrets = [MARKER, customer.access_token, customer.entity_id, code, ADMIN_TOKEN, BACKEND_SECRET];
    for (const secret of [...secrets, ACME_AGENT.email, ACME_AGENT.password]) expect(text).not.toContain(secret);
  });
});
