import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { loadExample } from '../support/load-example.js';
import { read } from '../support/project-files.js';
import { startScriptedServer } from '../support/scripted-server.js';
import { skipWaits } from '../support/stubbed-pages.js';

const { fetchWithRetries } = await loadExample('fetch-with-retries.js');
const { AgentSession } = await loadExample('backend/agent-session.js');
const { customerToken } = await loadExample('backend/customer-token.js');

/** Of each attempt of `fetchWithRetries`, and of its last one. */
const TIMEOUT_MS = 5_000;
const MIN_TIMEOUT_MS = 2_000;
const waits = skipWaits();
/** A session whose access token has to be renewed. It has expired if it is not valid for some seconds. */
function sessionAt(url: string, validSeconds = 0) {
  const expiresAtMs = validSeconds && Date.now() + validSeconds * 1000;
  const tokens = { accessToken: 'dev:old', expiresAtMs, refreshToken: 'dev:refresh' };
  const update = (change: (current: typeof tokens) => unknown) => change(tokens);
  return new AgentSession({ url, clientId: 'any', clientSecret: 'any', store: { read: async () => tokens, update } });
}

describe('fetch-with-retries.js', () => {
  it('repeats a request after 429, 503 and a lost connection, and waits as long as Retry-After says', async () => {
    const server = await startScriptedServer([429, 'closed', 503, 200]);
    const response = await fetchWithRetries(server.url, { method: 'POST', body: '{}' }, 30);
    expect(response.status).toBe(200);
    expect(server.requests()).toBe(4);
    expect(waits.totalMs()).toBeGreaterThanOrEqual(1000 + 2000 + 1000);
  });

  it('does not repeat a request that was rejected for good', async () => {
    const server = await startScriptedServer([400, 200]);
    expect((await fetchWithRetries(server.url, { method: 'POST', body: '{}' })).status).toBe(400);
    expect(server.requests()).toBe(1);
  });

  it.each([408, 502])('repeats a request after %i', async (status) => {
    const server = await startScriptedServer([status, 200]);
    expect((await fetchWithRetries(server.url, { method: 'POST', body: '{}' })).status).toBe(200);
  });

  it('begins no attempt that could end after the longest wait', async () => {
    const server = await startScriptedServer(Array(4).fill(503));
    expect((await fetchWithRetries(server.url, { method: 'POST', body: '{}' })).status).toBe(503);
    expect(server.requests()).toBeGreaterThan(1);
    expect(waits.totalMs()).toBeLessThanOrEqual(10_000 - MIN_TIMEOUT_MS);
  });

  it('repeats a request after a timeout, and limits the second attempt to the rest of the longest wait', async () => {
    const server = await startScriptedServer(['silent', 200]);
    const limits = vi.spyOn(AbortSignal, 'timeout').mockImplementationOnce((limitMs) => {
      const controller = new AbortController();
      setTimeout(async () => {
        while (server.requests() === 0) await setImmediate();
        controller.abort(new Error('timeout'));
      }, limitMs);
      return controller.signal;
    });
    expect((await fetchWithRetries(server.url, { method: 'POST', body: '{}' })).status).toBe(200);
    const [first, second] = limits.mock.calls.flat() as [number, number];
    expect([first, server.requests()]).toEqual([TIMEOUT_MS, 2]);
    expect(second).toBeGreaterThanOrEqual(MIN_TIMEOUT_MS);
    expect(second).toBeLessThanOrEqual(10_000 - waits.totalMs());
  });

  it('adds at most 3 s to a long Retry-After', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.99);
    const server = await startScriptedServer(['limited', 200]);
    expect((await fetchWithRetries(server.url, { method: 'POST', body: '{}' }, 600)).status).toBe(200);
    expect(waits.totalMs()).toBeGreaterThan(60_000);
    expect(waits.totalMs()).toBeLessThanOrEqual(63_000);
  });
});

describe('backend/agent-session.js', () => {
  it('ends a renewal within 90 s, because a later repetition ends the sign-in', async () => {
    const server = await startScriptedServer(['closed', 'limited', 'limited', 'limited']);
    await expect(sessionAt(server.url).token()).rejects.toThrow('no agent token: 429');
    expect(server.requests()).toBe(3);
    expect(waits.totalMs()).toBeGreaterThan(60_000);
    expect(waits.totalMs()).toBeLessThanOrEqual(90_000 - MIN_TIMEOUT_MS);
  });

  it('does not repeat the exchange of a code, because a second one ends the sign-in', async () => {
    const server = await startScriptedServer(['closed', 400]);
    await expect(sessionAt(server.url).signIn('any', 'any')).rejects.toThrow('fetch failed');
    expect(server.requests()).toBe(1);
  });

  it('lets parallel calls in a process share one renewal, and begins a new renewal after it has failed', async () => {
    const server = await startScriptedServer([503, 503, 503, 503, 400]);
    const session = sessionAt(server.url);
    const calls = await Promise.allSettled(Array.from({ length: 5 }, () => session.token()));
    for (const call of calls) expect(call).toMatchObject({ reason: { message: expect.stringContaining('503') } });
    expect(server.requests()).toBe(4);
    await expect(session.token()).rejects.toThrow('no agent token: 400');
  });

  it('returns the old token after a failed renewal while that token is valid and was not rejected', async () => {
    const server = await startScriptedServer([400, 400]);
    const session = sessionAt(server.url, 30);
    const [token, afterRejection] = await Promise.allSettled([session.token(), session.token('dev:old')]);
    expect(token).toMatchObject({ value: 'dev:old' });
    expect(afterRejection).toMatchObject({ status: 'rejected' });
    await expect(sessionAt(server.url).token()).rejects.toThrow('no agent token: 400');
  });

  it('names the status if a proxy responds with HTML', async () => {
    const server = await startScriptedServer(['proxy', 'proxy', 'proxy', 'proxy']);
    await expect(sessionAt(server.url).token()).rejects.toThrow('no agent token: 502');
  });
});

describe('backend/customer-token.js', () => {
  const session = { token: async () => 'dev:any' };

  it('does not let a user wait for a rate limit, but a job can', async () => {
    const server = await startScriptedServer(['limited', 'limited', 'proxy', 'proxy', 'proxy']);
    const { url } = server;
    const forUser = customerToken({ url, clientId: 'any', session }, 'user-1');
    await expect(forUser).rejects.toMatchObject({ status: 429, retryAfterSeconds: 60 });
    expect(waits.totalMs()).toBe(0);
    const job = customerToken({ url, clientId: 'any', session, maxWaitSeconds: 600 }, 'user-1');
    await expect(job).rejects.toThrow('no customer token: 502');
    expect(waits.totalMs()).toBeGreaterThan(60_000);
  });
});

describe('the delays in docs/integrating/errors-and-retries.md', () => {
  it.each(['examples/integrating/fetch-with-retries.js', 'packages/browser-client/src/request.ts'])(
    'are those of %s',
    (name) => {
      const source = read(name);
      const [, delay] = /DEFAULT_DELAY_SECONDS = (\d+);/.exec(source) ?? [];
      const [, longest] = /(?:MAX_DELAY_SECONDS|maxWaitSeconds) = (\d+)/.exec(source) ?? [];
      const page = read('docs/integrating/errors-and-retries.md').replaceAll(/\s+/g, ' ');
      expect(page).toContain(`lacks this header, wait ${delay} s.`);
      expect(page).toMatch(new RegExp(`(?:waits|takes) at most ${longest} s`));
    },
  );
});
