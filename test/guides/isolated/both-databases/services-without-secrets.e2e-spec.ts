import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createTokenVerifier, type TokenVerifier } from '../../../../packages/token-verifier/src/index.js';
import { askToken, claimsOf } from '../../../support/agent-tokens.js';
import { bearer } from '../../../support/authorization-headers.js';
import { revoke } from '../../../support/client-assertions.js';
import { loadExample } from '../../../support/load-example.js';
import { temporaryFolder } from '../../../support/project-files.js';
import { registryOfPage } from '../../../support/registry-of-page.js';
import { infoStatus } from '../../../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../../../support/use-service.js';

const registry = registryOfPage();
const [client] = registry.clients;
const { issuer, audience, jwks_file } = client.federated;
const API = 'chat-api';
const API_ACCOUNT = { namespace: 'customer-chat', name: 'chat-api' };
const BACKEND_ACCOUNT = { namespace: 'crm', name: 'acme-crm' };

const { ClientCredentials, fromFile } = await loadExample('backend/client-credentials.js');
const { customerToken } = await loadExample('backend/customer-token.js');
const { signOutEverywhere } = await loadExample('backend/user-data.js');
const { EventConsumer } = await loadExample('events/event-consumer.js');

const folder = temporaryFolder('services-without-secrets');
const backendFile = join(folder, 'backend-token');
const apiFile = join(folder, 'api-token');
const { privateKey, publicKey } = await generateKeyPair('RS256');

const service = useService(() => ({ registry, environment: { JWKS_DIR: folder } }));
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

  it('verify and introspect a token by the examples, which read the file of ASSERTION_FILE', async () => {
    await writeTokens();
    const token = await agentToken();
    Object.assign(process.env, {
      ...{ AUTH_URL: claimsOf(token).iss, JWKS_URL: `${service.url}/.well-known/jwks.json`, PORT: '0' },
      REVOCATIONS_URL: `${service.managementUrl}/oauth2/revocations`,
      INTROSPECTION_URL: `${service.managementUrl}/oauth2/introspect`,
      ...{ RESOURCE_SERVER_ID: API, ASSERTION_FILE: apiFile },
    });
    const { verifier, server } = await loadExample('resource-server/token-verifier.js');
    const { introspect } = await loadExample('resource-server/introspection.js');
    const options = { url: service.url, clientId: client.client_id, session: sessionOf() };
    const created = await customerToken(options, 'user-3');
    expect((await verifier.verify(created.access_token)).sub).toBe(created.entity_id);
    expect((await introspect(created.access_token)).sub).toBe(created.entity_id);
    server.close();
    process.removeAllListeners('SIGTERM'); // the example listens to it
    verifiers.push(verifier);
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

  it('keep what they have obtained after a change of the account, until the agent token is revoked', async () => {
    await writeTokens();
    const session = sessionOf();
    const stolen = await projectedToken(BACKEND_ACCOUNT);
    const agent = await session.token();
    const options = { url: service.url, clientId: client.client_id, session };
    const customer = (await customerToken(options, 'user-2')).access_token;
    const ofUser = { grant_type: 'agent_token', client_id: client.client_id, external_id: 'user-2' };
    const statuses = async () => [
      (await service.post('/v2/customer/token', { ...ofUser, response_type: 'token' }, bearer(agent))).status,
      await infoStatus(service, customer),
    ];
    const revokeTokens = () => revoke(service, { token: agent }, bearer(ADMIN_TOKEN));

    const federated = { ...client.federated, subject: `${client.federated.subject}-2` };
    const path = `/admin/clients/${client.client_id}`;
    expect((await service.admin('PATCH', path, { federated })).status).toBe(200);
    expect([await statuses(), (await requestWith(stolen)).status]).toEqual([[200, 200], 401]);
    expect((await revokeTokens()).status).toBe(200);
    expect([await statuses(), (await requestWith(stolen)).status]).toEqual([[401, 401], 401]);

    await service.admin('PATCH', path, { federated: client.federated });
    await revokeTokens();
    expect((await requestWith(stolen)).status).toBe(200);
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
