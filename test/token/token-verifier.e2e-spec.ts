import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { TokenVerifier } from '../../packages/token-verifier/src/token-verifier.js';
import { rotated, withoutKey } from '../../src/access-token/key-rotation.js';
import { type PrivateJwk } from '../../src/access-token/key-set.js';
import { agentTokenBody, claimsOf, newAgent } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { endSessionsAsOperator } from '../support/end-sessions.js';
import { manage } from '../support/management-api.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { FEED_SECRET, FEED_SERVERS } from '../support/revocation-feed.js';
import { withTwin } from '../support/signature-twin.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { testRegistry } from '../support/test-registry.js';
import { FILE_CHECK_PAUSE_MS, shortenPauses } from '../support/timers.js';
import { newCustomer, redeem, transferToken } from '../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../support/use-service.js';

const service = useService({ registry: { ...testRegistry(), resource_servers: FEED_SERVERS } });

/** A verifier of the service, whose clock it shares. */
function verifierOf(
  audience: 'customer-api' | 'agent-api',
  onStale: 'reject' | 'accept' = 'reject',
  feedUrl = service.managementUrl,
): TokenVerifier {
  const id = audience === 'agent-api' ? 'agent-server' : 'customer-server';
  const revocations = { url: `${feedUrl}/oauth2/revocations`, id, secret: FEED_SECRET, maxAgeSeconds: 60, onStale };
  const jwksUrl = `${service.url}/.well-known/jwks.json`;
  const options = { issuer: 'https://auth.example', jwksUrl, audience, revocations };
  return new TokenVerifier(options, { now: () => service.clock.now(), monotonic: () => performance.now() });
}

/** Resolves to `valid`, or to the code of the error. */
const decisionOf = (verifier: TokenVerifier, token: string): Promise<string> =>
  verifier.verify(token).then(
    () => 'valid',
    ({ code }) => code,
  );

let ofCustomers: TokenVerifier;
let ofAgents: TokenVerifier;
beforeAll(async () => {
  ofCustomers = verifierOf('customer-api');
  ofAgents = verifierOf('agent-api');
  await Promise.all([ofCustomers.ready(), ofAgents.ready()]);
});
afterAll(async () => {
  ofCustomers?.close();
  ofAgents?.close();
});

const verifierFor = (token: string) => (claimsOf(token).aud === 'agent-api' ? ofAgents : ofCustomers);
const decision = (token: string) => decisionOf(verifierFor(token), token);

/** What the service itself decides. */
async function isActive(token: string): Promise<boolean> {
  const server = claimsOf(token).aud === 'agent-api' ? 'agent-server' : 'customer-server';
  const response = await manage(service, 'POST', '/oauth2/introspect', basic(server, FEED_SECRET), { token });
  return response.body.active;
}

const movedOf = async (token: string): Promise<string> =>
  (await redeem(service, await transferToken(service, token))).body.access_token;
const customerTokenOf = async (agentToken: string): Promise<string> =>
  (await service.post(TOKEN, agentTokenBody(), bearer(agentToken))).body.access_token;

/** The tokens that an event ends, and the tokens that it does not end. */
interface Case {
  ended: string[];
  valid: string[];
  event: () => Promise<{ status: number }>;
  reasons: string[];
}

const CASES: Record<string, () => Promise<Case>> = {
  'the agent’s token ends with which it was obtained': async () => {
    const agentToken = await issueAgentToken(service);
    const ofAgent = await customerTokenOf(agentToken);
    return {
      ended: [agentToken, ofAgent, await movedOf(ofAgent)],
      valid: [await issueAgentToken(service), (await newCustomer(service)).access_token],
      event: () => service.send('DELETE', '/v2/token', bearer(agentToken)),
      reasons: ['revoked', 'ancestor_revoked', 'ancestor_revoked'],
    };
  },
  'a token of its session ends, or the token with which its own session was made': async () => {
    const first = await service.visit();
    const next = (await service.visit(cookieHeader(first))).body.access_token;
    const moved = await movedOf(next);
    return {
      ended: [first.body.access_token, next, moved, await movedOf(moved)],
      valid: [(await newCustomer(service)).access_token],
      event: () => service.send('DELETE', TOKEN, bearer(first.body.access_token)),
      reasons: ['revoked', 'revoked', 'revoked', 'revoked'],
    };
  },
  'all sessions of its customer end': async () => {
    const { access_token, entity_id } = await newCustomer(service);
    return {
      ended: [access_token, await movedOf(access_token)],
      valid: [(await newCustomer(service)).access_token],
      event: () => endSessionsAsOperator(service, ADMIN_TOKEN, entity_id),
      reasons: ['customer_generation', 'customer_generation'],
    };
  },
  'it is ended, also with the second valid signature of ECDSA': async () => {
    const [{ access_token }, other] = [await newCustomer(service), await newCustomer(service)];
    return {
      ended: [access_token, withTwin(access_token)],
      valid: [other.access_token, withTwin(other.access_token)],
      event: () => service.send('DELETE', TOKEN, bearer(access_token)),
      reasons: ['revoked', 'revoked'],
    };
  },
  'its agent gets a new password': async () => {
    const { path, email } = await newAgent(service);
    const agentToken = await issueAgentToken(service, { email });
    const ofAgent = await customerTokenOf(agentToken);
    return {
      ended: [agentToken, ofAgent, await movedOf(ofAgent)],
      valid: [(await newCustomer(service)).access_token],
      event: () => service.admin('PATCH', path, { password: 'a new password of the agent' }),
      reasons: ['revoked', 'ancestor_revoked', 'ancestor_revoked'],
    };
  },
};

it.each(Object.entries(CASES))('token-verifier rejects a token, as the service does, after %s', async (_, prepare) => {
  const { ended, valid, event, reasons } = await prepare();
  expect(await Promise.all([...ended, ...valid].map(decision))).toEqual([...ended, ...valid].map(() => 'valid'));
  expect((await event()).status).toBeLessThan(300);
  expect(await Promise.all(ended.map(isActive))).toEqual(ended.map(() => false));
  await vi.waitFor(async () => expect(await Promise.all(ended.map(decision))).not.toContain('valid'), 30_000);
  expect(await Promise.all(ended.map(decision))).toEqual(reasons);
  expect(await Promise.all(valid.map(decision))).toEqual(valid.map(() => 'valid'));
  expect(await Promise.all(valid.map(isActive))).toEqual(valid.map(() => true));
});

/** A verifier of the test that reads the feed through a proxy. */
async function startVerifier(feed: TcpProxy, onStale: 'reject' | 'accept' = 'reject'): Promise<TokenVerifier> {
  const feedUrl = feed.through(service.managementUrl).replace(/\/$/, '');
  const verifier = verifierOf('customer-api', onStale, feedUrl);
  onTestFinished(async () => {
    verifier.close();
    await feed.close();
  });
  await verifier.ready();
  return verifier;
}

const newToken = async (): Promise<string> => (await newCustomer(service)).access_token;
const end = (token: string) => service.send('DELETE', TOKEN, bearer(token));
const eventually = (check: () => Promise<unknown>) => vi.waitFor(check, { timeout: 60_000, interval: 20 });

/** Changes the keys of the service, and waits until the service publishes these keys. */
async function changeKeys(change: (set: { keys: PrivateJwk[] }) => { keys: PrivateJwk[] }): Promise<PrivateJwk[]> {
  const path = join(service.database.folder, 'keys.json');
  const set = change(JSON.parse(readFileSync(path, 'utf8')));
  writeFileSync(path, JSON.stringify(set), { mode: 0o600 });
  const kids = set.keys.map(({ kid }) => kid);
  await eventually(async () => {
    const { body } = await service.send('GET', '/.well-known/jwks.json');
    expect(body.keys.map(({ kid }: PrivateJwk) => kid)).toEqual(kids);
  });
  return set.keys;
}

it('token-verifier, while the feed is away, accepts tokens for maxAgeSeconds, then none under reject, and knows what it missed when the feed is back', async () => {
  const feed = await startTcpProxy(service.managementUrl);
  const [verifier, token, ended] = [await startVerifier(feed), await newToken(), await newToken()];
  await feed.cut();
  await end(ended);
  expect(await decisionOf(verifier, token)).toBe('valid');
  service.clock.advance({ seconds: 61 });
  for (const each of [token, ended]) expect(await decisionOf(verifier, each)).toBe('revocations_stale');
  const state = { revocations: 'stale', problem: 'unreachable' };
  await eventually(async () => expect(verifier.state).toMatchObject(state)); // The next request may be 200 ms away.
  await feed.restore();
  await eventually(async () => expect(await decisionOf(verifier, token)).toBe('valid'));
  await eventually(async () => expect(await decisionOf(verifier, ended)).toBe('revoked'));
});

it('token-verifier, when the keys are rotated, accepts the tokens of the new key, and no token of a removed key', async () => {
  shortenPauses(FILE_CHECK_PAUSE_MS);
  const verifier = await startVerifier(await startTcpProxy(service.managementUrl), 'accept');
  const old = await newToken();
  expect(await decisionOf(verifier, old)).toBe('valid');
  const [added, previous] = await changeKeys((set) => rotated(set, service.clock.seconds(), 28_800));
  service.clock.advance({ seconds: Number(added?.nbf) - service.clock.seconds() });
  const token = await newToken();
  expect(await decisionOf(verifier, token)).toBe('valid');
  expect(await decisionOf(verifier, old)).toBe('valid');
  await changeKeys((set) => withoutKey(set, `${previous?.kid}`, service.clock.seconds()));
  service.clock.advance({ seconds: 300 });
  await eventually(async () => expect(await decisionOf(verifier, old)).toBe('unknown_key'));
  expect(await decisionOf(verifier, token)).toBe('valid');
});
