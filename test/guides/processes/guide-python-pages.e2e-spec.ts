import { createServer } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { deferred } from '../../support/deferred.js';
import { listen } from '../../support/listen.js';
import { managingRegistry } from '../../support/managed-customers.js';
import { temporaryFolder } from '../../support/project-files.js';
import { hasPython, startPython } from '../../support/python.js';
import { ACME_AGENT, ACME_BACKEND, ACME_SITE, BACKEND_SECRET, changed } from '../../support/test-registry.js';
import { request } from '../../support/test-service.js';
import { infoStatus } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

/** The registry with a client that gets agent tokens without a person. */
function registry() {
  const managing = managingRegistry();
  const grants = { grant_types: ['client_credentials', 'agent_token'], agent: ACME_AGENT.email };
  return { ...managing, clients: changed(managing.clients, [ACME_BACKEND], grants) };
}

describe.skipIf(!hasPython)('python/page_server.py and python/sign_outs.py (skipped without Python)', () => {
  const service = useService({ registry: registry() });
  const folder = temporaryFolder('python-pages');
  const started: Awaited<ReturnType<typeof startPython>>['process'][] = [];
  let fileNumber = 0;
  let path: string;
  /** What the backend sees of the service. */
  let mode: 'available' | 'closed' | 'unavailable' = 'available';
  const proxy = createServer(async (incoming, outgoing) => {
    if (mode === 'closed') return void incoming.socket.destroy();
    if (mode === 'unavailable') return void outgoing.writeHead(503, { 'Retry-After': '1' }).end('{}');
    const { method = 'GET', url = '', headers } = incoming;
    const { authorization, 'content-type': type = '' } = headers;
    const body = method === 'POST' ? { body: new Uint8Array(await buffer(incoming)) } : {};
    const sent = { 'content-type': type, ...(authorization && { authorization }) };
    const response = await fetch(`${service.url}${url}`, { method, headers: sent, ...body });
    const text = await response.text();
    await hold?.(text);
    outgoing.writeHead(response.status, { 'content-type': 'application/json' }).end(text);
  });
  /** Waits before the proxy passes on a response of the service. */
  let hold: ((text: string) => Promise<void>) | undefined;
  /** Resolves to the next customer token, before the backend gets it. */
  const holdNextToken = () =>
    new Promise<{ token: string; release: () => void }>((resolve) => {
      hold = async (text) => {
        if (!text.includes('entity_id')) return;
        hold = undefined;
        const { promise, resolve: release } = deferred();
        resolve({ token: JSON.parse(text).access_token, release: () => release() });
        await promise;
      };
    });
  let proxyUrl: string;
  beforeAll(async () => {
    proxyUrl = await listen(proxy);
    return () => void proxy.close();
  });
  afterEach(() => {
    mode = 'available';
    for (const each of started.splice(0)) each.signal('SIGKILL');
  });

  /** Starts the backend. Another start with the same file is a restart. */
  async function start(isNew = true) {
    if (isNew) path = join(folder, `sign-outs-${fileNumber++}.sqlite`);
    const client = { CLIENT: ACME_BACKEND, CLIENT_SECRET: BACKEND_SECRET, PAGE_CLIENT: ACME_SITE };
    const backend = await startPython('page_server.py', { SERVICE: proxyUrl, ...client, SIGN_OUTS: path, PORT: '0' });
    started.push(backend.process);
    return backend;
  }
  const send = (url: string, cookie: string, headers: object = {}) =>
    request(url, { method: 'POST', headers: { cookie, ...headers } });

  async function startSession(url: string, userId: string): Promise<string> {
    const body = new URLSearchParams({ user_id: userId });
    const { headers } = await request(`${url}/sign-in`, { method: 'POST', body });
    const [cookie = ''] = (headers.get('set-cookie') ?? '').split(';');
    return cookie;
  }
  async function tokenOf(url: string, cookie: string, query = ''): Promise<string> {
    const { status, body } = await send(`${url}/chat-token${query}`, cookie);
    expect({ status, body }).toMatchObject({ status: 200, body: { access_token: expect.any(String) } });
    return body.access_token;
  }
  async function signIn(url: string, userId: string): Promise<{ cookie: string; token: string }> {
    const cookie = await startSession(url, userId);
    return { cookie, token: await tokenOf(url, cookie) };
  }
  const untilEnded = (token: string) =>
    vi.waitFor(async () => expect(await infoStatus(service, token)).toBe(401), { timeout: 60_000, interval: 200 });

  it('ends the token of a sign-out that an outage of the service and a restart of the backend delay', async () => {
    const first = await start();
    const { cookie, token } = await signIn(first.url, 'user-1');
    expect(await infoStatus(service, token)).toBe(200);
    mode = 'closed';
    expect((await send(`${first.url}/sign-out`, cookie)).body).toEqual({});
    expect((await send(`${first.url}/chat-token`, cookie)).status).toBe(401);
    first.process.signal('SIGKILL');
    mode = 'available';
    expect(await infoStatus(service, token)).toBe(200);
    await start(false);
    await untilEnded(token);
  });

  it('ends every token that the parallel tabs of a sign-in got, also the replaced ones', async () => {
    const { url } = await start();
    const cookie = await startSession(url, 'user-5');
    const ofTabs = await Promise.all(Array.from({ length: 4 }, () => tokenOf(url, cookie)));
    const tokens = new Set([...ofTabs, await tokenOf(url, cookie, '?renew')]);
    expect(tokens.size).toBeGreaterThan(2);
    const separate = await tokenOf(url, cookie, '?separate');
    const other = await signIn(url, 'user-5');
    expect((await send(`${url}/sign-out`, cookie)).status).toBe(200);
    for (const token of tokens) await untilEnded(token);
    for (const token of [other.token, separate]) expect(await infoStatus(service, token)).toBe(200);
  });

  it('hands out no token that arrives after the sign-out, and ends it', async () => {
    const { url } = await start();
    const cookie = await startSession(url, 'user-6');
    const issued = holdNextToken();
    const response = send(`${url}/chat-token`, cookie);
    const { token, release } = await issued;
    expect((await send(`${url}/sign-out`, cookie)).status).toBe(200);
    release();
    expect((await response).status).toBe(503);
    await untilEnded(token);
  });

  it('ends all sessions and tokens of a user who lost a device, and those of no other user', async () => {
    const { url } = await start();
    const [phone, computer] = [await signIn(url, 'user-2'), await signIn(url, 'user-2')];
    const other = await signIn(url, 'user-3');
    mode = 'unavailable';
    expect((await send(`${url}/lost-device`, computer.cookie)).status).toBe(200);
    for (const { cookie } of [phone, computer]) expect((await send(`${url}/chat-token`, cookie)).status).toBe(401);
    mode = 'available';
    for (const { token } of [phone, computer]) await untilEnded(token);
    expect((await send(`${url}/chat-token`, other.cookie)).body.access_token).toBe(other.token);
    expect(await infoStatus(service, other.token)).toBe(200);
  });

  it('signs no user out for a page of another site or for a visitor', async () => {
    const { url } = await start();
    const { cookie, token } = await signIn(url, 'user-4');
    for (const path of ['/sign-out', '/lost-device']) {
      expect((await send(`${url}${path}`, cookie, { origin: 'https://other.example' })).status).toBe(403);
      expect((await request(`${url}${path}`, { headers: { cookie } })).status).toBe(403);
    }
    expect((await send(`${url}/lost-device`, 'session=x')).status).toBe(401);
    const { status, body, headers } = await send(`${url}/sign-out`, 'session=x');
    expect({ status, body }).toEqual({ status: 200, body: {} });
    expect(headers.get('access-control-allow-credentials')).toBe('true');
    expect((await send(`${url}/chat-token`, cookie)).body.access_token).toBe(token);
  });
});
