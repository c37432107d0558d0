import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createTokenVerifier, type TokenVerifier } from '../../../packages/token-verifier/src/index.js';
import { askToken, claimsOf } from '../../support/agent-tokens.js';
import { loadExample } from '../../support/load-example.js';
import { read, temporaryFolder } from '../../support/project-files.js';
import { ACME, testRegistry } from '../../support/test-registry.js';
import { useService } from '../../support/use-service.js';

/** The client of the page for backends, which is the account of deploy/backend. */
const [client] = parse(read('examples/integrating/backend/registry.yaml')).clients;
const { issuer, audience, jwks_file } = client.federated;
const API = 'chat-api';
const API_ACCOUNT = { namespace: 'chat', name: 'chat-api' };
const BACKEND_ACCOUNT = { namespace: 'crm', name: 'acme-crm' };

const { ClientCredentials, fromFile } = await loadExample('backend/client-credentials.js');
const { customerToken } = await loadExample('backend/customer-token.js');
const { signOutEverywhere } = await loadExample('backend/user-data.js');
const { EventConsumer } = await loadExample('events/event-consumer.js');

const folder = temporaryFolder('services-without-secrets');
const backendFile = join(folder, 'backend-token');
const apiFile = join(folder, 'api-token');
const { privateKey, publicKey } = await generateKeyPair('RS256');

const service = useService(() => {
  const registry = testRegistry();
  registry.clients.push(client);
  registry.agents.push({
    ...{ email: client.agent, name: 'CRM', password: 'a password of the agent' },
    ...{ organization_id: ACME, scopes: ['customers:own'] },
  });
  const subject = subjectOf(API_ACCOUNT);
  const federated = { issuer, subject, audience, jwks_file };
  registry.resource_servers.push({ id: API, audiences: ['customer-api'], events: 'all', federated });
  return { registry, environment: { JWKS_DIR: folder } };
});
beforeAll(async () => {
  const jwk = { ...(await exportJWK(publicKey)), kid: 'cluster-key', alg: 'RS256', use: 'sig' };
  writeFileSync(join(folder, jwks_file), JSON.stringify({ keys: [jwk] }));
});

type Account = typeof API_ACCOUNT;
const subjectOf = ({ namespace, name }: Account) => `system:serviceaccount:${namespace}:${name}`;

/** A projected token with the claims that the API server of Kubernetes signs, for 10 minutes. */
function projectedToken(account: Account, claims: object = {}): Promise<string> {
  const seconds = Math.floor(service.clock.now() / 1000);
  const { namespace, name } = account;
  const named = (kind: string) => ({ name: kind, uid: randomUUID() });
  const bound = { namespace, node: named('node-1'), pod: named(`${name}-0`), serviceaccount: named(name) };
  const times = { iat: seconds, nbf: seconds, exp: seconds + 600 };
  const payload = { aud: [audience], iss: issuer, jti: randomUUID(), sub: subjectOf(account), ...times };
  return new SignJWT({ ...payload, 'kubernetes.io': bound, ...claims })
    .setProtectedHeader({ alg: 'RS256', kid: 'cluster-key' })
    .sign(privateKey);
}
/** The kubelet writes the files, and replaces them later. */
async function writeTokens(): Promise<void> {
  writeFileSync(backendFile, `${await projectedToken(BACKEND_ACCOUNT)}\n`);
  writeFileSync(apiFile, await projectedToken(API_ACCOUNT));
}

const verifiers: TokenVerifier[] = [];
afterEach(() => {
  for (const verifier of verifiers.splice(0)) verifier.close();
});
async function verifierOf(): Promise<TokenVerifier> {
  const url = `${service.managementUrl}/oauth2/revocations`;
  const revocations = { url, id: API, assertion: fromFile(apiFile), maxAgeSeconds: 60, onStale: 'reject' } as const;
  const { iss } = claimsOf((await agentToken()) as string);
  const jwksUrl = `${service.url}/.well-known/jwks.json`;
  const verifier = createTokenVerifier({ issuer: iss as string, audience: 'customer-api', jwksUrl, revocations });
  verifiers.push(verifier);
  await verifier.ready();
  return verifier;
}
const sessionOf = () =>
  new ClientCredentials({ url: service.url, clientId: client.client_id, assertion: fromFile(backendFile) });
const agentToken = (): Promise<string> => sessionOf().token();
const requestWith = (client_assertion: string, client_id: string = client.client_id) =>
  askToken(service, {
    ...{ grant_type: 'client_credentials', client_id, client_secret: undefined, client_assertion },
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
  });

describe('a backend and a resource server that have a token of their platform, and no secret', () => {
  it('walk through a new customer, a known customer, a revocation and an event', async () => {
    await writeTokens();
    const options = { url: service.url, clientId: client.client_id, session: sessionOf() };
    const verifier = await verifierOf();

    const created = await customerToken(options, 'user-1');
    expect(created.created).toBe(true);
    expect((await verifier.verify(created.access_token)).act?.client_id).toBe(client.client_id);
    const known = await customerToken(options, 'user-1');
    expect([known.entity_id, known.created]).toEqual([created.entity_id, false]);

    await signOutEverywhere(options, 'user-1');
    const isEnded = async () => (await verifier.verify(known.access_token).catch((error) => error)).code;
    await expect.poll(isEnded, { timeout: 25_000 }).toMatch(/^(revoked|customer_generation)$/);

    const state = { links: {}, erased: {} as Record<string, string>, conversations: {} };
    const store = { read: async () => state, update: async (change: (current: object) => void) => change(state) };
    const consumer = new EventConsumer({
      ...{ url: `${service.managementUrl}/oauth2/events`, id: API, assertion: fromFile(apiFile), store },
    });
    await service.erase(created.entity_id);
    const readErased = async () => {
      await consumer.readPage();
      return Object.keys(state.erased);
    };
    await expect.poll(readErased, { timeout: 25_000 }).toEqual([created.entity_id]);
  });

  it('go on with the token that the platform has written since', async () => {
    await writeTokens();
    const session = sessionOf();
    const first = await session.token();
    service.clock.advance({ seconds: 700 });
    await expect(session.token(first)).rejects.toMatchObject({ status: 401, error: 'invalid_client' });
    await writeTokens();
    expect(claimsOf(await session.token(first)).sid).toBe(claimsOf(first).sid);
  });

  it('report a temporary error while the file is missing', async () => {
    rmSync(backendFile, { force: true });
    await expect(agentToken()).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it.each<[string, () => Promise<string>]>([
    ['of the same account name in another namespace', () => projectedToken({ ...BACKEND_ACCOUNT, namespace: 'other' })],
    ['of another account', () => projectedToken(API_ACCOUNT)],
    ['of another cluster', () => projectedToken(BACKEND_ACCOUNT, { iss: 'https://other.cluster.local' })],
    ['for the API of Kubernetes', () => projectedToken(BACKEND_ACCOUNT, { aud: [issuer] })],
    ['for several audiences', () => projectedToken(BACKEND_ACCOUNT, { aud: [audience, issuer] })],
    ['without an end', () => projectedToken(BACKEND_ACCOUNT, { exp: undefined })],
  ])('a token %s is rejected', async (_of, token) => {
    const { status, body } = await requestWith(await token());
    expect({ status, error: body.error }).toEqual({ status: 401, error: 'invalid_client' });
  });
});
