import { ServiceUnavailableException } from '@nestjs/common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { SignIn } from '../../src/agent-auth/page/sign-in.js';
import { hashPassword, MAX_PARALLEL_HASHES } from '../../src/registry/agent-password.js';
import { Agents } from '../../src/registry/agents.js';
import { AgentBrowser, AUTH_ORIGIN, FOR_TOKEN, FORM, formOf } from '../support/authorization-page.js';
import { deferred } from '../support/deferred.js';
import { expectError } from '../support/expect-error.js';
import { manage } from '../support/management-api.js';
import { ACME_AGENT, RIVAL_AGENT } from '../support/test-registry.js';
import { useService } from '../support/use-service.js';

const MAX_WAITING_CHECKS = 80;
/** More than the queue has room for. */
const REQUEST_COUNT = 100;

const service = useService({ environment: { TRUST_PROXY: '1' } });
let networks = 0;

/** A browser in a network that no other browser uses. */
function newBrowser(ip = `10.${++networks >> 8}.${networks & 255}.1`): AgentBrowser {
  return new AgentBrowser(service, { 'x-forwarded-for': ip });
}

it('a sign-in that the service could not check is no failure of the agent', async () => {
  const agents = service.application.get(Agents);
  const browser = newBrowser();
  vi.spyOn(agents, 'byEmail').mockRejectedValue(new ServiceUnavailableException('database'));
  for (let n = 0; n < 11; n++) expect((await browser.signIn()).status).toBe(503);
  vi.restoreAllMocks();
  expect((await browser.signIn()).status).toBe(200);
});

describe('the queue of password checks', () => {
  const checks = () => service.application.get(SignIn, { strict: false });

  let release = () => {};
  afterEach(() => release());

  /** Keeps every slot of the queue occupied until `release` is called. */
  function occupy(): void {
    const released = deferred();
    release = released.resolve;
    for (let n = 0; n < MAX_PARALLEL_HASHES; n++)
      checks()
        .queue.run(() => released.promise)
        .catch(() => undefined);
  }

  async function outcomes(): Promise<Record<string, number>> {
    const { text } = await manage(service, 'GET', '/metrics');
    const samples = [...text.matchAll(/^cas_password_checks_total\{outcome="(\w+)"\} (\d+)$/gm)];
    return Object.fromEntries(samples.map(([, outcome, count]) => [outcome, Number(count)]));
  }

  /** Sends the form of a sign-in page; resolves to the status, or to 499 if the signal aborts. */
  async function send(
    browser: AgentBrowser,
    form: ReturnType<typeof formOf>,
    network: string,
    signal: AbortSignal,
    email = RIVAL_AGENT.email,
  ) {
    const headers = { cookie: browser.cookie, 'content-type': FORM, origin: AUTH_ORIGIN, 'x-forwarded-for': network };
    const body = new URLSearchParams({ ...form.hidden, email, password: 'wrong' }).toString();
    const response = fetch(service.url + form.action, { method: 'POST', headers, body, signal });
    return response.then(
      ({ status }) => status,
      () => 499,
    );
  }

  /** Signs in from different networks until the queue is full. */
  async function fill(): Promise<{ responses: Promise<number>[]; abandon: () => void }> {
    const browser = newBrowser();
    const form = formOf(await browser.open(FOR_TOKEN));
    const controller = new AbortController();
    const responses = Array.from({ length: REQUEST_COUNT }, (_, n) =>
      send(browser, form, `100.64.${n >> 8}.${n & 255}`, controller.signal, `unknown${n}@acme.example`),
    );
    await expect.poll(() => checks().queue.waiting).toBe(MAX_WAITING_CHECKS);
    return { responses, abandon: () => controller.abort() };
  }

  it('rejects requests above its bound with 503, and drops clients that disconnect', async () => {
    occupy();
    const before = await outcomes();
    const { responses, abandon } = await fill();
    const rejectedCount = (before.rejected ?? 0) + REQUEST_COUNT - MAX_WAITING_CHECKS;
    await expect.poll(async () => (await outcomes()).rejected).toBe(rejectedCount);

    const browser = newBrowser();
    const page = await browser.open(FOR_TOKEN);
    const rejected = await browser.submit(page, ACME_AGENT);
    expect(rejected.status).toBe(503);
    expect(rejected.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expect(rejected.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(rejected.cookies).toEqual([]);
    const json = await browser.submit(page, ACME_AGENT, undefined, { accept: 'application/json' });
    expectError(json, { status: 503, error: 'temporarily_unavailable', hint: undefined });
    expect((await service.send('GET', '/.well-known/jwks.json')).status, 'other routes').toBe(200);

    abandon();
    await expect.poll(() => checks().queue.waiting).toBe(0);
    const statuses = await Promise.all(responses);
    expect(statuses.filter((status) => status === 503)).toHaveLength(REQUEST_COUNT - MAX_WAITING_CHECKS);
    expect(statuses.filter((status) => status === 499)).toHaveLength(MAX_WAITING_CHECKS);
    const signedIn = browser.submit(page, ACME_AGENT);
    await expect.poll(() => checks().queue.waiting).toBe(1);
    release();
    expect((await signedIn).status).toBe(200);
    expect(await outcomes()).toEqual({
      checked: (before.checked ?? 0) + 1,
      rejected: rejectedCount + 2,
      abandoned: (before.abandoned ?? 0) + MAX_WAITING_CHECKS,
    });
  });

  it('does not count the requests that it rejects as failures of the agent', async () => {
    occupy();
    const browser = newBrowser();
    const page = await browser.open(FOR_TOKEN);
    const { responses, abandon } = await fill();
    for (let n = 0; n < 11; n++) expect((await browser.submit(page, ACME_AGENT)).status).toBe(503);
    abandon();
    release();
    await Promise.all(responses);
    expect((await browser.submit(page, ACME_AGENT)).status).toBe(200);
  });

  it('counts an abandoned sign-in as a failure of its network', async () => {
    occupy();
    const browser = newBrowser();
    const form = formOf(await browser.open(FOR_TOKEN));
    const controller = new AbortController();
    const responses = Array.from({ length: 10 }, () => send(browser, form, '198.51.100.77', controller.signal));
    await expect.poll(() => checks().queue.waiting).toBe(10);
    controller.abort();
    await expect.poll(() => checks().queue.waiting).toBe(0);
    release();
    expect(await Promise.all(responses)).toEqual(Array(10).fill(499));
    expect((await newBrowser('198.51.100.77').signIn(RIVAL_AGENT)).status).toBe(429);
  });

  it('does not delay a password that the operator sets', async () => {
    occupy();
    expect(await hashPassword('a pass phrase of the operator')).toMatch(/^\$argon2id\$/);
  });
});
