import { generateKeyPairSync } from 'node:crypto';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { agentTokenBody, claimsOf, refresh } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { BACKEND_CALLBACK } from '../support/authorization-page.js';
import { TOKEN } from '../support/cookie-grant.js';
import { loadExample } from '../support/load-example.js';
import { read } from '../support/project-files.js';
import { TestIssuer } from '../support/test-issuer.js';
import {
  ACME,
  ACME_AGENT,
  ACME_BACKEND,
  ACME_SITE,
  BACKEND_SECRET,
  changed,
  RIVAL,
  testRegistry,
} from '../support/test-registry.js';
import { type HttpClient } from '../support/test-service.js';
import { agentTokenPair, authorizationCode, infoStatus, newCustomer } from '../support/transfers.js';
import { serviceOfTest, useService } from '../support/use-service.js';

const PEM = { type: 'pkcs8', format: 'pem' } as const;

interface Tokens {
  accessToken: string;
  expiresAtMs: number;
  refreshToken: string;
}

/** The store that all replicas share: one row with a lock. */
class SharedStore {
  private lock: Promise<unknown> = Promise.resolve();
  /** Whether a replica crashes before it stores the next tokens. */
  crashes = false;

  constructor(public tokens: Tokens) {}

  async fill(tokens: Tokens): Promise<void> {
    this.tokens = tokens;
  }

  async read(): Promise<Tokens> {
    return this.tokens;
  }

  update(change: (current: Tokens) => Promise<Tokens> | Tokens): Promise<Tokens> {
    const work = this.lock.then(async () => {
      const tokens = await change(this.tokens);
      if (this.crashes) throw new Error('crashed');
      this.tokens = tokens;
      return tokens;
    });
    this.lock = work.catch(() => undefined);
    return work;
  }
}

const service = useService(async () => {
  issuer = await TestIssuer.start('RS256');
  const TRUSTED_AGENT_ISSUERS = JSON.stringify([{ ...configured, jwks_uri: issuer.trust().jwks_uri }]);
  const registry = testRegistry();
  const fields = { grant_types: ['client_credentials', 'agent_token'], agent: ACME_AGENT.email };
  registry.clients = changed(registry.clients, [ACME_BACKEND], fields);
  return { registry, environment: { TRUSTED_AGENT_ISSUERS } };
});
let issuer: TestIssuer;
const { isTemporary } = await loadExample('fetch-with-retries.js');
const { ClientCredentials, fromFile } = await loadExample('backend/client-credentials.js');
const { AgentSession } = await loadExample('backend/agent-session.js');
const { customerToken } = await loadExample('backend/customer-token.js');
const { CustomerTokens } = await loadExample('backend/customer-tokens.js');
const { checkToken, endToken } = await loadExample('backend/page-token.js');
const { assertion } = await loadExample('backend/assertion.js');
const configured = JSON.parse(read('examples/integrating/backend/trusted-issuers.json'))[0];
afterAll(async () => {
  await issuer?.stop();
});

/** A store with the tokens of a sign-in. By default, the access token has to be renewed. */
async function signedIn(validSeconds = 0): Promise<SharedStore> {
  const { access_token, refresh_token } = await agentTokenPair(service);
  const expiresAtMs = validSeconds && Date.now() + validSeconds * 1000;
  return new SharedStore({ accessToken: access_token, expiresAtMs, refreshToken: refresh_token });
}

const replicaOf = (store: object) =>
  new AgentSession({ url: service.url, clientId: ACME_BACKEND, clientSecret: BACKEND_SECRET, store });
const tokenFor = (session: unknown, userId: unknown) =>
  customerToken({ url: service.url, clientId: ACME_SITE, session }, userId);
const statusOf = async (agentToken: string, at: HttpClient = service) =>
  (await at.post(TOKEN, agentTokenBody(), bearer(agentToken))).status;

/** An agent token of the issuer in backend/trusted-issuers.json. */
function trustedToken(): Promise<string> {
  const claims = {
    iss: configured.issuer,
    aud: configured.audience,
    sub: 'crm-backend',
    scope: 'customers:own',
    [configured.organization_claim]: ACME,
  };
  return issuer.sign(service.clock.now(), claims, { typ: configured.typ });
}

describe('backend/client-credentials.js', () => {
  const credentials = (more: object = {}) =>
    new ClientCredentials({ url: service.url, clientId: ACME_BACKEND, clientSecret: BACKEND_SECRET, ...more });

  it('gets one agent token for parallel calls, and keeps it', async () => {
    const session = credentials();
    const tokens = await Promise.all(Array.from({ length: 5 }, () => session.token()));
    expect(new Set([...tokens, await session.token()]).size).toBe(1);
    expect(await statusOf(tokens[0])).toBe(200);
  });

  it('gets a new token after a 401, also if another replica has ended the tokens of the client', async () => {
    const [one, two] = [credentials(), credentials()];
    await one.token();
    await service.send('DELETE', '/v2/token', bearer(await two.token()));
    expect(await tokenFor(one, 'user-of-replicas')).toMatchObject({ created: true });
    expect(await statusOf(await two.token(await two.token()))).toBe(200);
  });

  it('keeps the token while no new one can be had, and rejects with the error when it has expired', async () => {
    const session = credentials();
    const token = await session.token();
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 28_770_000); // 30 s before its end
    session.clientSecret = 'x'.repeat(32);
    expect(await session.token()).toBe(token);
    await expect(session.token(token)).rejects.toMatchObject({ status: 401, error: 'invalid_client' });
  });

  it('reports a temporary error if the assertion cannot be read', async () => {
    const session = credentials({ assertion: fromFile('/nonexistent/token') });
    const error = await session.token().catch((reason: unknown) => reason);
    expect(isTemporary(error)).toBe(true);
  });
});

describe('backend/agent-session.js with two replicas', () => {
  it('exchanges the code of a sign-in, and fills the store', async () => {
    const store = new SharedStore({ accessToken: '', expiresAtMs: 0, refreshToken: '' });
    const agent = await replicaOf(store).signIn(await authorizationCode(service), BACKEND_CALLBACK);
    const token = await replicaOf(store).token();
    expect(claimsOf(token).sub).toBe(agent);
    expect(await statusOf(token)).toBe(200);
    expect((await refresh(service, store.tokens.refreshToken)).status).toBe(200);
  });

  it('renews the agent token once for parallel calls', async () => {
    const store = await signedIn();
    const replicas = [replicaOf(store), replicaOf(store)];
    const before = store.tokens.refreshToken;
    const tokens = await Promise.all(Array.from({ length: 10 }, (_, index) => replicas[index % 2].token()));
    expect(new Set(tokens)).toEqual(new Set([store.tokens.accessToken]));
    expect(store.tokens.refreshToken).not.toBe(before);
    expect(await statusOf(tokens[0])).toBe(200);
  });

  it('stays signed in if a replica crashes before it has stored the new tokens', async () => {
    const store = await signedIn();
    store.crashes = true;
    await expect(replicaOf(store).token()).rejects.toThrow('crashed');
    store.crashes = false;
    const second = replicaOf(store);
    expect(await statusOf(await second.token())).toBe(200);
    store.tokens.expiresAtMs = 0;
    expect(await statusOf(await second.token())).toBe(200);
  });

  it('reports that a person must sign in again', async () => {
    const store = await signedIn();
    store.tokens.refreshToken = 'dev:unknown';
    const message = expect.stringContaining('no agent token: 400 invalid_grant');
    await expect(replicaOf(store).token()).rejects.toMatchObject({ message, status: 400, error: 'invalid_grant' });
  });
});

describe('backend/customer-token.js', () => {
  it('returns the same customer for a user to each replica', async () => {
    const store = await signedIn();
    const replicas = [replicaOf(store), replicaOf(store)];
    const responses = await Promise.all(replicas.map((session) => tokenFor(session, 'user-1')));
    expect(responses[0].entity_id).toBe(responses[1].entity_id);
    expect(responses.map(({ created }) => created).sort()).toEqual([false, true]);
    expect(responses[0].organization_id).toBe(ACME);
  });

  it('replaces an agent token that the service rejects', async () => {
    const store = await signedIn();
    const session = replicaOf(store);
    await session.token();
    await service.send('DELETE', '/v2/token', bearer(store.tokens.accessToken));
    expect(await tokenFor(session, 'user-2')).toMatchObject({ created: true });
  });

  it('fails with the status and the hint of the service', async () => {
    const failure = { status: 400, hint: 'external_id: must not be empty' };
    await expect(tokenFor(replicaOf(await signedIn()), '')).rejects.toMatchObject(failure);
  });

  it.each([undefined, null, Number.NaN, 2 ** 60])(
    'sends no request for a user without an exact id: %s',
    async (userId) => {
      const session = { token: () => expect.unreachable() };
      await expect(tokenFor(session, userId)).rejects.toMatchObject({ error: 'no_user_id' });
    },
  );

  it('does not show a malformed agent token in its error, and reports a permanent error', async () => {
    const error = await tokenFor({ token: () => 'dev:secret\n' }, 'user-1').catch((reason: unknown) => reason);
    expect(error).toMatchObject({ message: 'malformed token', error: 'malformed_token' });
  });

  it('sends a number as a string', async () => {
    const session = replicaOf(await signedIn());
    expect((await tokenFor(session, 4711)).entity_id).toBe((await tokenFor(session, '4711')).entity_id);
  });
});

describe('backend/page-token.js', () => {
  it('checks the token of a page: valid, and of this organization, and ends it', async () => {
    const { access_token: token, entity_id } = await newCustomer(service);
    const check = (organization: string) => checkToken(service, token, organization);
    expect([await check(ACME), await check(RIVAL)]).toEqual([entity_id, undefined]);
    await endToken(service, token);
    expect(await check(ACME)).toBeUndefined();
    await endToken(service, token);
  });

  it('has nothing to end if the service does not accept the token', async () => {
    await expect(endToken(service, 'dev:expired')).resolves.toBeUndefined();
  });

  it('treats a malformed token as invalid, without a request', async () => {
    for (const token of ['dev:a\nb', 'dev:…', 'dev: x', 'x'.repeat(20_000), '', undefined])
      expect(await checkToken({ url: 'http://127.0.0.1:1' }, token, ACME)).toBeUndefined();
  });
});

describe('backend/assertion.js', () => {
  it.each([true, 1.5])('signs no assertion for a user without an exact id: %s', (userId) => {
    const handle = assertion({ privateKey: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export(PEM) });
    expect(() => handle({ session: { userId } }, { set: () => undefined })).toThrow('userId: no string');
  });
});

describe('backend/trusted-issuers.json', () => {
  it('lets the service accept the token that the page describes', async () => {
    const token = await trustedToken();
    const session = { token: async () => token };
    expect(await tokenFor(session, 'user-3')).toMatchObject({ organization_id: ACME });
  });
});

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
    const { intervalMs, keepsProcessAlive } = await start(replicaOf(await signedIn(300)));
    expect([intervalMs, keepsProcessAlive]).toEqual([30_000, false]);
  });

  it('repeats the renewal of a replica that crashed, although no user needs a token', async () => {
    const store = await signedIn(300);
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
    const store = await signedIn(30);
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

/** A customer token of a user. */
const obtain = async (agentToken: string, at = service) =>
  (await at.post(TOKEN, agentTokenBody({ external_id: 'user-1' }), bearer(agentToken))).body;

describe('“What ends the tokens” in docs/integrating/backend.md', () => {
  it('a customer token stays valid after its trusted issuer was removed, and ends with the token of the issuer', async () => {
    const agentToken = await trustedToken();
    const { access_token: customerToken } = await obtain(agentToken);
    const without = await serviceOfTest({ database: service.database });
    expect(await statusOf(agentToken, without)).toBe(401);
    expect(await infoStatus(without, customerToken)).toBe(200);
    expect((await service.send('DELETE', '/v2/token', bearer(agentToken))).status).toBe(200);
    expect(await infoStatus(without, customerToken)).toBe(401);
  });
});

describe('backend/customer-tokens.js', () => {
  it('requests one token for many calls, and one more if the API rejects it', async () => {
    const { access_token: agentToken } = await agentTokenPair(service);
    const session = { token: async () => agentToken };
    const tokens = new CustomerTokens({ url: service.url, clientId: ACME_SITE, session });
    const used: string[] = [];
    const info = (token: string) => {
      used.push(token);
      return service.send('GET', '/v2/customer/info', bearer(token));
    };
    expect((await tokens.call('user-2', info)).status).toBe(200);
    await service.send('DELETE', '/v2/customer/token', bearer(used[0] as string));
    expect((await tokens.call('user-2', info)).status).toBe(200);
    expect(used[1]).toBe(used[0]);
    expect(used[2]).not.toBe(used[0]);
    expect((await tokens.call('user-2', async () => ({ status: 401 }))).status).toBe(401);
  });
});
