import { createServer } from 'node:http';
import express from 'express';
import mysql from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { useDatabase } from '../../support/databases.js';
import { deferred } from '../../support/deferred.js';
import { listen } from '../../support/listen.js';
import { loadExample } from '../../support/load-example.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { ACME_BACKEND, ACME_ORIGIN, ACME_SITE } from '../../support/test-registry.js';
import { infoStatus } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

interface Session {
  userId: string;
  signIn: string;
}

describe.runIf(onMariadb)('backend/sign-outs.js and backend/chat-token.js', () => {
  const service = useService();
  const database = useDatabase();
  const server = createServer();
  /** By the cookie. As with express-session, each request has a copy of its own, and the last one to end is stored. */
  const sessions = new Map<string, Session>();
  const reported: string[] = [];
  let pool: mysql.Pool;
  // biome-ignore lint/suspicious/noExplicitAny: the examples are JavaScript without types
  let signOuts: any;
  let url: string;
  /** Gets the agent token, which a token request of the backend needs. */
  let agentToken: () => Promise<string>;
  beforeAll(async () => {
    const { chatToken } = await loadExample('backend/chat-token.js');
    const { SignOuts } = await loadExample('backend/sign-outs.js');
    const token = await issueAgentToken(service, { clientId: ACME_BACKEND });
    agentToken = async () => token;
    pool = mysql.createPool(database.url.replace(/^mariadb/, 'mysql'));
    signOuts = new SignOuts({ url: service.url, pool, onError: ({ message }: Error) => reported.push(message) });
    await signOuts.start();
    const app = express();
    app.use((incoming, response, next) => {
      const cookie = incoming.headers.cookie ?? '';
      const session = structuredClone(sessions.get(cookie));
      Object.assign(incoming, { session });
      response.on('finish', () => session && sessions.set(cookie, session));
      next();
    });
    const session = { token: () => agentToken() };
    const options = { url: service.url, clientId: ACME_SITE, session };
    app.all('/chat-token', chatToken({ pageOrigin: ACME_ORIGIN, signOuts, ...options }));
    server.on('request', app);
    url = `${await listen(server)}/chat-token`;
  });
  afterAll(async () => {
    server.close();
    await pool?.end();
  });

  const send = (cookie: string, query = '') => fetch(url + query, { method: 'POST', headers: { cookie } });
  async function tokenOf(cookie: string, query = ''): Promise<string> {
    const response = await send(cookie, query);
    expect(response.status).toBe(200);
    return ((await response.json()) as { access_token: string }).access_token;
  }
  const untilEnded = (token: string) =>
    vi.waitFor(async () => expect(await infoStatus(service, token)).toBe(401), { timeout: 20_000 });

  it('ends every token that the parallel tabs of a sign-in got, also the replaced ones', async () => {
    sessions.set('tabs', { userId: 'user-1', signIn: 'tabs' });
    sessions.set('other', { userId: 'user-1', signIn: 'TABS' });
    const ofTabs = await Promise.all(Array.from({ length: 4 }, () => tokenOf('tabs')));
    const tokens = new Set([...ofTabs, await tokenOf('tabs', '?renew')]);
    expect(tokens.size).toBeGreaterThan(2);
    const kept = [await tokenOf('other'), await tokenOf('tabs', '?separate')];
    await signOuts.endSignIn('tabs');
    for (const token of tokens) await untilEnded(token);
    for (const token of kept) expect(await infoStatus(service, token)).toBe(200);
  });

  it('hands out no token that arrives after the sign-out, and ends it', async () => {
    sessions.set('late', { userId: 'user-2', signIn: 'late' });
    const [requested, released] = [deferred(), deferred()];
    const token = await agentToken();
    agentToken = async () => {
      requested.resolve();
      await released.promise;
      return token;
    };
    const record = vi.spyOn(signOuts, 'record');
    const response = send('late');
    await requested.promise;
    await signOuts.endSignIn('late');
    released.resolve();
    expect((await response).status).toBe(401);
    await untilEnded(record.mock.lastCall?.[1] as string);
    expect((await send('late')).status).toBe(401);
  });

  it('logs a token that can never be ended once, and drops it', async () => {
    await signOuts.record('malformed', 'dev:a\nb', Date.now() + 600_000);
    await signOuts.endSignIn('malformed');
    await vi.waitFor(async () => {
      const [rows] = await pool.query("SELECT id FROM issued_token WHERE sign_in = 'malformed'");
      expect(rows).toEqual([]);
    }, 20_000);
    expect(reported).toEqual([expect.stringMatching(/^row \d+ of issued_token: malformed token$/)]);
  });
});
