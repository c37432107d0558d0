import { createServer } from 'node:http';
import { approveMove, request } from '@customer-authorization/browser-client';
import express from 'express';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { pkce } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { deferred } from '../support/deferred.js';
import { listen } from '../support/listen.js';
import { loadExample } from '../support/load-example.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { startScriptedServer } from '../support/scripted-server.js';
import { ACME_BACKEND, ACME_ORIGIN, ACME_SITE } from '../support/test-registry.js';
import { useService } from '../support/use-service.js';

const bodyOf = (response: Response) =>
  response.json() as Promise<{ access_token: string; entity_id: string; expires_in: number }>;

const service = useService();
let agentToken: string;
beforeAll(async () => {
  agentToken = await issueAgentToken(service, { clientId: ACME_BACKEND });
});

/** Stores nothing. The test of sign-outs.js uses a database. */
const signOuts = { record: async () => true, keep: async () => undefined, endSignIn: async () => undefined };

/** Starts a backend whose sign-ins `sessionOf` knows by the cookie. Returns the URL of its route, until `stop`. */
async function startBackend(options: object, sessionOf: (cookie: string) => object | undefined) {
  const { chatToken } = await loadExample('backend/chat-token.js');
  const app = express();
  app.use((incoming, _response, next) => {
    Object.assign(incoming, { session: sessionOf(incoming.headers.cookie ?? '') });
    next();
  });
  app.all('/chat-token', chatToken({ pageOrigin: ACME_ORIGIN, signOuts, ...options }));
  const server = createServer(app);
  return { url: `${await listen(server)}/chat-token`, stop: () => void server.close() };
}

describe('backend/chat-token.js', () => {
  let url: string;
  let stop: (() => void) | undefined;
  /** The sign-ins of the application, by the value of its cookie. */
  const sessions = new Map<string, object>([
    ['signed-in', { userId: 'user-1', signIn: 'a' }],
    ['on-another-device', { userId: 'user-1', signIn: 'b' }],
    ['without-a-user', {}],
  ]);
  beforeAll(async () => {
    const session = { token: async () => agentToken };
    const options = { url: service.url, clientId: ACME_SITE, session };
    ({ url, stop } = await startBackend(options, (cookie) => sessions.get(cookie)));
  });
  afterAll(() => stop?.());

  const send = (cookie: string, { method = 'POST', query = '' } = {}) =>
    fetch(url + query, { method, headers: { cookie, origin: ACME_ORIGIN } });
  const tokenOf = async (cookie: string, query = '') => (await bodyOf(await send(cookie, { query }))).access_token;
  const info = (token: string) => service.send('GET', '/v2/customer/info', { ...bearer(token), origin: ACME_ORIGIN });
  const customerOf = async (token: string) => (await info(token)).body.entity_id;

  it('gives the page a token that it can use, and the rest of its lifetime', async () => {
    const response = await send('signed-in');
    expect(response.headers.get('cache-control')).toBe('no-store');
    const { access_token, expires_in } = await bodyOf(response);
    expect(expires_in).toBeGreaterThan(28_000);
    expect((await info(access_token)).status).toBe(200);
  });

  it('caches one token per sign-in, all of the same customer, and replaces it on request', async () => {
    const [first, again, other] = [
      await tokenOf('signed-in'),
      await tokenOf('signed-in'),
      await tokenOf('on-another-device'),
    ];
    expect(again).toBe(first);
    expect(other).not.toBe(first);
    const customers = await Promise.all([first, other].map(customerOf));
    expect(new Set(customers).size).toBe(1);
    expect(await tokenOf('signed-in', '?renew')).not.toBe(first);
  });

  it('lets the page read the 401 of a visitor, and responds to a preflight, which has no cookie', async () => {
    for (const cookie of ['', 'without-a-user']) {
      const { status, headers } = await send(cookie);
      expect([status, headers.get('access-control-allow-origin')]).toEqual([401, ACME_ORIGIN]);
      expect(headers.get('access-control-allow-credentials')).toBe('true');
    }
    const { status, headers } = await send('', { method: 'OPTIONS' });
    expect([status, headers.get('access-control-allow-origin')]).toEqual([204, ACME_ORIGIN]);
  });

  it.each([undefined, null])('treats a session with the user id %s as signed out', async (userId) => {
    sessions.set('no-id', { userId });
    expect((await send('no-id')).status).toBe(401);
  });

  it('stores the id of the customer in the session, so that the backend can end all of its tokens', async () => {
    sessions.set('leaving', { userId: 'user-4', signIn: 'a' });
    const token = await tokenOf('leaving');
    const { chatToken } = sessions.get('leaving') as { chatToken: { entity_id: string } };
    const body = { customer_id: chatToken.entity_id };
    expect((await service.post('/v2/customer/end_sessions', body, bearer(agentToken))).status).toBe(200);
    expect((await info(token)).status).toBe(401);
  });

  it('gives each user of one session a token of that user, also if the first one returns', async () => {
    const session: { userId?: string; signIn: string } = { signIn: 'a' };
    sessions.set('shared', session);
    for (const userId of ['user-6', 'user-7', 'user-6']) {
      session.userId = userId;
      sessions.set('of this user only', { userId, signIn: 'b' });
      const [shared, own] = [await tokenOf('shared'), await tokenOf('of this user only')];
      expect(await customerOf(shared)).toBe(await customerOf(own));
    }
  });

  it('names the customer of the token, so that the page notices another user', async () => {
    sessions.set('named', { userId: 'user-8', signIn: 'a' });
    const { access_token, entity_id } = await bodyOf(await send('named'));
    expect(entity_id).toBe(await customerOf(access_token));
  });

  it('gives a separate token for a move, which moves the customer of the user and survives the log-out', async () => {
    sessions.set('moving', { userId: 'user-5', signIn: 'a' });
    const token = await tokenOf('moving');
    const requestToken = () =>
      request<{ access_token: string }>(`${url}?separate`, { headers: { cookie: 'moving', origin: ACME_ORIGIN } });
    const { verifier, asked } = pkce();
    const tokens = { url: service.url, get: () => tokenOf('moving'), requestToken };
    const { transferToken } = await approveMove(tokens, ACME_SITE, asked.code_challenge);
    expect(await tokenOf('moving')).toBe(token);
    const { entity_id } = (await info(token)).body;
    await service.send('DELETE', '/v2/customer/token', bearer(token));
    const exchange = {
      grant_type: 'identity_token',
      client_id: ACME_SITE,
      code: transferToken,
      code_verifier: verifier,
    };
    const received = await service.post(TOKEN, exchange);
    expect(received.body).toMatchObject({ entity_id });
    expect((await info(received.body.access_token as string)).status).toBe(200);
  });
});

describe('backend/chat-token.js without an agent token', () => {
  let tokenOfAgent: () => Promise<string>;
  const reported: Error[] = [];

  /** Returns a function that sends a request of the page of a user. */
  async function startForUser(signedIn: object = { userId: 'user-1', signIn: 'a' }) {
    const service = await startScriptedServer([200, 200]);
    const onError = (error: Error) => void reported.push(error);
    const session = { token: () => tokenOfAgent() };
    const options = { url: service.url, clientId: 'any', session, maxWaitMs: 1_000, onError };
    const { url, stop } = await startBackend(options, () => signedIn);
    onTestFinished(stop);
    return () => fetch(url, { method: 'POST' });
  }

  it('responds with 500 without Retry-After if a person must act, and reports the error', async () => {
    const send = await startForUser();
    const errors = [
      { status: 400, error: 'invalid_grant' },
      { status: 401, error: 'invalid_token' },
      { error: 'no_sign_in' },
    ];
    for (const fields of errors) {
      tokenOfAgent = async () => Promise.reject(Object.assign(new Error('permanent'), fields));
      const { status, headers } = await send();
      expect([status, headers.get('retry-after')]).toEqual([500, null]);
      expect(reported.at(-1)).toMatchObject(fields);
    }
  });

  it('responds with 500 to a session without the id of a sign-in, because its tokens could not be ended', async () => {
    const send = await startForUser({ userId: 'user-1' });
    expect((await send()).status).toBe(500);
    expect(reported.at(-1)).toMatchObject({ error: 'no_sign_in_id' });
  });

  it('responds with 503 and the Retry-After of the service if the error is temporary', async () => {
    const send = await startForUser();
    const errors = [
      [{}, '2'],
      [{ status: 429, retryAfterSeconds: 60 }, '60'],
      [{ status: 502 }, '2'],
    ] as const;
    for (const [fields, retryAfter] of errors) {
      tokenOfAgent = async () => Promise.reject(Object.assign(new TypeError('fetch failed'), fields));
      const { status, headers } = await send();
      expect([status, headers.get('retry-after')]).toEqual([503, retryAfter]);
      expect(headers.get('access-control-expose-headers')).toBe('Retry-After');
    }
  });

  it('responds with 503 while a renewal of the agent token goes on, and with the token afterwards', async () => {
    const send = await startForUser();
    const renewal = deferred<string>();
    tokenOfAgent = () => renewal.promise;
    expect((await send()).status).toBe(503);
    renewal.resolve('dev:any');
    expect((await send()).status).toBe(200);
  });

  it.each(['user-2', undefined])(
    'gives the user %s no token that was requested for the user before in the same session',
    async (nextUser) => {
      const session: { userId: string | undefined; signIn: string; chatToken?: object } = {
        userId: 'user-1',
        signIn: 'a',
      };
      const send = await startForUser(session);
      const [requested, renewal] = [deferred(), deferred<string>()];
      tokenOfAgent = () => {
        requested.resolve();
        return renewal.promise;
      };
      const response = send();
      await requested.promise;
      session.userId = nextUser;
      renewal.resolve('dev:any');
      const { status, headers } = await response;
      expect([status, headers.get('retry-after')]).toEqual([503, '2']);
      expect(session.chatToken).toBeUndefined();
    },
  );
});

describe('logError of fetch-with-retries.js', () => {
  it('writes a line that an alert can find, and the cause of a failed connection', async () => {
    const { logError } = await loadExample('fetch-with-retries.js');
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    logError(Object.assign(new Error('no agent token: 400 invalid_grant'), { status: 400, error: 'invalid_grant' }));
    logError(new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } }));
    logError(new Error('no row'), 90);
    expect(written.mock.calls.flat()).toEqual([
      'permanent error: no agent token: 400 invalid_grant\n',
      'temporary error: fetch failed (ECONNREFUSED)\n',
      'temporary error: no row, no success for 90 s\n',
    ]);
    written.mockRestore();
  });
});
