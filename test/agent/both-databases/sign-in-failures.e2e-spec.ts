import { DataSource } from 'typeorm';
import { beforeEach, describe, expect, it } from 'vitest';
import { SignInFailure } from '../../../src/agent-auth/session/sign-in-failure.entity.js';
import { Purge } from '../../../src/identity/purge.js';
import { AgentBrowser, FOR_TOKEN } from '../../support/authorization-page.js';
import { beginWindow } from '../../support/limit-windows.js';
import { metricOf } from '../../support/management-api.js';
import { ACME_AGENT, RIVAL_AGENT } from '../../support/test-registry.js';
import type { TestResponse } from '../../support/test-service.js';
import { DAY_SECONDS, serviceOfTest, useService } from '../../support/use-service.js';

const HOUR_SECONDS = 3_600;
const environment = { TRUST_PROXY: '1' };
const service = useService({ environment });
const rows = () => service.rowsOf(SignInFailure);

beforeEach(async () => {
  await rows().clear();
  beginWindow(service);
});

const at = (ip: string, to = service) => new AgentBrowser(to, { 'x-forwarded-for': ip });
const wrong = (email = ACME_AGENT.email) => ({ email, password: 'a wrong password' });
const again = { ...FOR_TOKEN, prompt: 'login' };

/** Fails to sign in at each address in turn. */
async function failAt(ip: (n: number) => string, times: number, email?: (n: number) => string): Promise<number[]> {
  const statuses: number[] = [];
  for (let n = 0; n < times; n++) statuses.push((await at(ip(n)).signIn(wrong(email?.(n)))).status);
  return statuses;
}

/** Lets the counts of some failures have more, as if as many sign-ins had failed. */
async function raise(failures: number, raised: number): Promise<void> {
  expect((await rows().update({ failures }, { failures: raised })).affected).toBeGreaterThan(0);
}

/** The statuses of failed sign-ins that are all admitted. */
const admitted = (times: number) => Array(times).fill(400);

function expectRejected({ status, headers, text, cookies }: TestResponse, maxSeconds: number): void {
  expect(status).toBe(429);
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(maxSeconds);
  expect(text).toContain('Too many attempts. Try again in ');
  expect(cookies.join()).not.toMatch(/agent_session|agent_device/);
}

describe('failed sign-ins at one account from one network', () => {
  it('are at most 10 in 900 s, then also the right password gets 429, but not in another network', async () => {
    expect(await failAt(() => '203.0.113.7', 10)).toEqual(admitted(10));
    const rejected = await at('203.0.113.7').signIn();
    expectRejected(rejected, 900);
    expect(service.audit.at(-1)).toMatchObject({ event: 'sign_in.limited', outcome: 'failure' });
    expect(await metricOf(service, 'cas_rate_limited_total{limit="sign_in"}')).toBe(1);
    expect((await at('203.0.113.8').signIn()).status).toBe(200);
    expect((await at('203.0.113.7').signIn(RIVAL_AGENT)).status).toBe(200);
    service.clock.advance({ seconds: Number(rejected.headers.get('retry-after')) });
    expect((await at('203.0.113.7').signIn()).status).toBe(200);
  });

  it('are limited in the same way for an email without an account', async () => {
    expect(
      await failAt(
        () => '203.0.113.7',
        10,
        () => 'unknown@acme.example',
      ),
    ).toEqual(admitted(10));
    expectRejected(await at('203.0.113.7').signIn(wrong('unknown@acme.example')), 900);
  });

  it('count neither sign-ins that succeed nor further attempts', async () => {
    for (let n = 0; n < 12; n++) expect((await at('203.0.113.7').signIn()).status).toBe(200);
    expect(await failAt(() => '203.0.113.7', 9)).toEqual(admitted(9));
    expect((await at('203.0.113.7').signIn()).status).toBe(200);
    expect(await failAt(() => '203.0.113.7', 2)).toEqual([400, 429]);
    expect(await rows().maximum('failures')).toBe(10);
  });

  it('are 8 times as many from the networks of one IPv6 /56', async () => {
    const inNetwork = (n: number) => `2001:db8:1:${n.toString(16)}::1`;
    expect(await failAt(inNetwork, 3)).toEqual(admitted(3));
    await raise(3, 78);
    expect(await failAt((n) => inNetwork(n + 3), 3)).toEqual([...admitted(2), 429]);
    expect((await at('2001:db8:1:100::1').signIn()).status).toBe(200);
  });

  it('cannot be more by parallel attempts at two processes', async () => {
    const other = await serviceOfTest({ database: service.database, environment });
    beginWindow(service, other);
    const browsers = Array.from({ length: 40 }, (_, n) => at('203.0.113.7', n % 2 ? other : service));
    const pages = await Promise.all(browsers.map((browser) => browser.open(FOR_TOKEN)));
    const responses = await Promise.all(
      browsers.map((browser, n) => browser.submit(pages[n] as TestResponse, wrong())),
    );
    const statuses = responses.map(({ status }) => status);
    const checked = statuses.filter((status) => status === 400).length;
    expect(checked).toBeGreaterThan(0);
    expect(checked).toBeLessThanOrEqual(10);
    expect(await rows().maximum('failures')).toBeLessThanOrEqual(10);
  });
});

describe('failed sign-ins from one network', () => {
  it('are at most 60 in 900 s in one network, at all accounts together', async () => {
    const emailOf = (n: number) => `agent${n}@acme.example`;
    expect(await failAt(() => '203.0.113.7', 3, emailOf)).toEqual(admitted(3));
    for (let n = 0; n < 5; n++) expect((await at('203.0.113.7').signIn(RIVAL_AGENT)).status).toBe(200);
    await raise(3, 58);
    expect(
      await failAt(
        () => '203.0.113.7',
        3,
        (n) => emailOf(n + 3),
      ),
    ).toEqual([...admitted(2), 429]);
    expectRejected(await at('203.0.113.7').signIn(), 900);
    expect((await at('203.0.113.8').signIn()).status).toBe(200);
  });
});

describe('failed sign-ins at one account from all networks', () => {
  async function failHundredTimes(): Promise<void> {
    expect(await failAt((n) => `198.51.100.${n}`, 3)).toEqual(admitted(3));
    await raise(3, 98);
    expect(await failAt((n) => `198.51.100.${n + 3}`, 2)).toEqual(admitted(2));
  }

  it('are at most 100 an hour, which a browser of the account does not feel for 30 days', async () => {
    const [known, late, ofOther] = [at('203.0.113.7'), at('203.0.113.8'), at('203.0.113.9')];
    for (const browser of [known, late]) expect((await browser.signIn()).status).toBe(200);
    expect((await ofOther.signIn(RIVAL_AGENT)).status).toBe(200);
    await failHundredTimes();
    for (const browser of [at('203.0.113.10'), ofOther])
      expectRejected(await browser.signIn(ACME_AGENT, again), HOUR_SECONDS);
    expect((await known.signIn(wrong(), again)).status).toBe(400);
    expect((await known.signIn(ACME_AGENT, again)).status).toBe(200);
    service.clock.advance({ seconds: 30 * DAY_SECONDS - 2 * HOUR_SECONDS });
    beginWindow(service); // still within 30 days of the sign-ins
    await failHundredTimes();
    expect((await known.signIn(ACME_AGENT, again)).status).toBe(200); // and is known for 30 more days
    service.clock.advance({ seconds: 2 * HOUR_SECONDS });
    beginWindow(service);
    await failHundredTimes();
    expectRejected(await late.signIn(ACME_AGENT, again), HOUR_SECONDS);
    expect((await known.signIn(ACME_AGENT, again)).status).toBe(200);
  });

  it('are felt by a browser whose cookie was changed', async () => {
    const browser = at('203.0.113.7');
    expect((await browser.signIn()).status).toBe(200);
    const name = [...browser.cookies.keys()].find((each) => each.endsWith('agent_device')) as string;
    const value = browser.cookies.get(name) as string;
    browser.cookies.set(
      name,
      value.replace(/\d{10}/, (seconds) => String(Number(seconds) + 1)),
    );
    expect(browser.cookies.get(name)).not.toBe(value);
    await failHundredTimes();
    expectRejected(await browser.signIn(ACME_AGENT, again), HOUR_SECONDS);
  });
});

it('rows of failed sign-ins name no email and no address, and the purge deletes them', async () => {
  expect(await failAt(() => '203.0.113.7', 2)).toEqual(admitted(2));
  const stored = await rows().find();
  expect(stored.map(({ failures }) => failures)).toEqual([2, 2, 2]);
  expect(JSON.stringify(stored)).not.toMatch(/acme|203/);
  await service.application
    .get(DataSource)
    .createQueryBuilder()
    .update(SignInFailure)
    .set({ expiresAt: new Date(Date.now() - 60_000) })
    .execute();
  expect(await service.application.get(Purge).run()).toMatchObject({ sign_in_failure: 3 });
  expect(await rows().count()).toBe(0);
});
