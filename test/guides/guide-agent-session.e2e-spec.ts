import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { agentTokenBody } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { loadExample } from '../support/load-example.js';
import { ACME_BACKEND, BACKEND_SECRET } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';
import { agentTokenPair } from '../support/transfers.js';

const { AgentSession } = await loadExample('backend/agent-session.js');

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service?.stop());
afterEach(() => void vi.restoreAllMocks());

interface Tokens {
  accessToken: string;
  expiresAtMs: number;
  refreshToken: string;
}
interface Store {
  tokens: Tokens;
  crashes: boolean;
  read(): Promise<Tokens>;
  update(change: (current: Tokens) => Promise<Tokens>): Promise<Tokens>;
}

/** A store with the tokens of a sign-in. `update` fails before it stores the next tokens if `crashes` is true. */
async function signedInStore(validSeconds: number): Promise<Store> {
  const { access_token, refresh_token } = await agentTokenPair(service);
  const expiresAtMs = Date.now() + validSeconds * 1000;
  const store: Store = {
    tokens: { accessToken: access_token as string, expiresAtMs, refreshToken: refresh_token as string },
    crashes: false,
    read: async () => store.tokens,
    async update(change) {
      const tokens = await change(store.tokens);
      if (store.crashes) throw new Error('crashed');
      store.tokens = tokens;
      return tokens;
    },
  };
  return store;
}
const replicaOf = (store: object) =>
  new AgentSession({ url: service.url, clientId: ACME_BACKEND, clientSecret: BACKEND_SECRET, store });

/** Starts a replica, and returns its check and the interval of the check. */
async function start(replica: { start(onError?: unknown): Promise<void> }, onError: unknown = expect.unreachable) {
  const timer = vi.spyOn(globalThis, 'setInterval');
  await replica.start(onError);
  const call = timer.mock.calls.findIndex(([work]) => String(work).includes('store.read'));
  const [check, intervalMs] = timer.mock.calls[call] as [() => Promise<void>, number];
  const { value: interval } = timer.mock.results[call] as { value: NodeJS.Timeout };
  clearInterval(interval);
  return { check, intervalMs, keepsProcessAlive: interval.hasRef() };
}

describe('start() of backend/agent-session.js', () => {
  it('checks the tokens every 30 s, and lets the process exit', async () => {
    const { intervalMs, keepsProcessAlive } = await start(replicaOf(await signedInStore(300)));
    expect([intervalMs, keepsProcessAlive]).toEqual([30_000, false]);
  });

  it('repeats the renewal of a replica that crashed, although no user needs a token', async () => {
    const store = await signedInStore(300);
    const { check } = await start(replicaOf(store));
    const before = store.tokens.refreshToken;
    await check();
    expect(store.tokens.refreshToken).toBe(before);
    store.tokens.expiresAtMs = 0;
    store.crashes = true;
    await expect(replicaOf(store).token()).rejects.toThrow('crashed');
    store.crashes = false;
    await check();
    expect(store.tokens.refreshToken).not.toBe(before);
    const { status } = await service.post(TOKEN, agentTokenBody(), bearer(store.tokens.accessToken));
    expect(status).toBe(200);
  });

  it('reports each error and the time without a success, although the old token is still valid', async () => {
    const store = await signedInStore(30);
    store.tokens.refreshToken = 'dev:unknown';
    const startedAtMs = Date.now();
    const now = vi.spyOn(Date, 'now').mockReturnValue(startedAtMs);
    const onError = vi.fn();
    const replica = replicaOf(store);
    const { check } = await start(replica, onError);
    now.mockReturnValue(startedAtMs + 20_000);
    await check();
    expect(onError).toHaveBeenLastCalledWith(expect.objectContaining({ error: 'invalid_grant' }), 20);
    expect(onError).toHaveBeenCalledTimes(2);
    expect(await replica.token()).toBe(store.tokens.accessToken);
  });

  it('reports an unreachable store', async () => {
    const store = { read: () => Promise.reject(new Error('no connection')) };
    const onError = vi.fn();
    await start(replicaOf(store), onError);
    expect(onError).toHaveBeenCalledWith(expect.objectContaining({ message: 'no connection' }), expect.any(Number));
  });
});
