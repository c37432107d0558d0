import { afterAll, expect, it } from 'vitest';
import { agentTokenBody } from '../support/agent-tokens.js';
import { AUTH_URL, registryWithSignIn, signIn } from '../support/assertion-issuer.js';
import { bearer } from '../support/authorization-headers.js';
import {
  accountToken,
  asserting,
  BACKEND_ACCOUNT,
  CLUSTER_CLIENT,
  ownAssertion,
  registryWithKeys,
  revoke,
  SIGNING_CLIENT,
} from '../support/client-assertions.js';
import { TOKEN } from '../support/cookie-grant.js';
import { expectInvalidRequest } from '../support/expect-error.js';
import { manage } from '../support/management-api.js';
import { TestIssuer } from '../support/test-issuer.js';
import { ACME } from '../support/test-registry.js';
import { agentTokenPair, newCustomer } from '../support/transfers.js';
import { serviceOfTest, useService } from '../support/use-service.js';

const AGENTS = 'https://chat.example';
const OPERATORS = 'https://auth.example/admin';
const SIGN_IN = 'urn:acme:sign-in';

/** One issuer with one key for everything, so that only the rules about the claims and headers tell the kinds apart. */
let issuer: TestIssuer;
afterAll(() => issuer?.stop());

const service = useService(async () => {
  issuer = await TestIssuer.start();
  const { organizations: _, ...operators } = issuer.trust({ audience: OPERATORS });
  const environment = {
    TRUSTED_AGENT_ISSUERS: JSON.stringify([issuer.trust({ audience: AGENTS })]),
    ADMIN_ISSUER: JSON.stringify(operators),
  };
  const { jwks_uri } = issuer.trust();
  const settings = { [ACME]: { issuer: issuer.issuer, jwks_uri, audience: [SIGN_IN] } };
  return {
    environment,
    registry: registryWithSignIn(settings, registryWithKeys(issuer, issuer, { jwks_uri, audience: AUTH_URL })),
  };
});

const now = () => service.clock.now();
/** The claims that another kind needs, so that a token is not rejected because one of them is missing. */
const usual = { sub: BACKEND_ACCOUNT, role: 'all' };
const sign = (claims: object, header: object = {}) => issuer.sign(now(), { ...usual, ...claims }, header);

const KINDS: Record<string, () => Promise<string>> = {
  'a customer token': async () => (await newCustomer(service)).access_token,
  'an agent token': async () => (await agentTokenPair(service)).access_token,
  'a token of a trusted issuer': () => sign({ aud: AGENTS }),
  'an admin token': () => sign({ aud: OPERATORS }),
  'an assertion about a user': () => {
    const exp = service.clock.seconds() + 300;
    return sign({ aud: SIGN_IN, exp, client_id: undefined, organization_id: undefined }, { typ: 'JWT' });
  },
  'an assertion of a client': () => ownAssertion(issuer, now(), { role: 'all' }),
  'the token of a platform': () => accountToken(issuer, now(), { role: 'all' }),
};

const statusOf = async (response: Promise<{ status: number }>) => (await response).status;
const PLACES: Record<string, (token: string) => Promise<number>> = {
  'as the bearer token of a customer': (token) => statusOf(service.send('GET', '/v2/customer/info', bearer(token))),
  'as the bearer token of an agent': (token) => statusOf(service.post(TOKEN, agentTokenBody(), bearer(token))),
  'as an admin token': (token) => statusOf(manage(service, 'GET', '/admin/clients', bearer(token))),
  'as an assertion about a user': (token) => statusOf(signIn(service, token)),
  'as the assertion of a client': (token) => statusOf(revoke(service, asserting(SIGNING_CLIENT, token))),
  'as the token of a platform': (token) => statusOf(revoke(service, asserting(CLUSTER_CLIENT, token))),
};

const ACCEPTED: Record<string, string> = {
  'a customer token': 'as the bearer token of a customer',
  'an agent token': 'as the bearer token of an agent',
  'a token of a trusted issuer': 'as the bearer token of an agent',
  'an admin token': 'as an admin token',
  'an assertion about a user': 'as an assertion about a user',
  'an assertion of a client': 'as the assertion of a client',
  'the token of a platform': 'as the token of a platform',
};

it.each(Object.keys(KINDS))('%s is accepted in its own place, and in no place of another kind of JWT', async (kind) => {
  for (const [place, statusOfToken] of Object.entries(PLACES)) {
    const token = await (KINDS[kind] as () => Promise<string>)();
    // also without the prefix of the tokens of this service, which is no part of the JWT
    const statuses = [await statusOfToken(token), await statusOfToken(token.replace(/^\w+:/, ''))];
    if (ACCEPTED[kind] === place) expect(statuses[0], place).toBe(200);
    else for (const status of statuses) expect([400, 401], place).toContain(status);
  }
});

it('a federated entry with the issuer and the audience of agents, operators or this service is rejected, and authenticates nobody', async () => {
  const { jwks_uri } = issuer.trust();
  const former = await serviceOfTest({
    database: service.database,
    environment: { AUTH_URL: 'https://former.example' },
  });
  for (const [index, [name, audience]] of [
    [issuer.issuer, AGENTS],
    [issuer.issuer, OPERATORS],
    [AUTH_URL, 'agent-api'],
  ].entries()) {
    const client_id = `misconfigured-${index}`;
    const federated = { issuer: name, subject: 'misconfigured', audience, jwks_uri };
    const entry = { client_id, name: 'Backend', client_type: 'server', federated };
    const violation = /^federated\.issuer: tokens of this issuer and audience are those of agents or operators/;
    expectInvalidRequest(await service.admin('POST', '/admin/clients', entry), violation);
    expect((await former.admin('POST', '/admin/clients', entry)).status).toBe(201);
    const token = await accountToken(issuer, now(), { iss: name, sub: 'misconfigured', aud: audience });
    await expect.poll(async () => (await service.admin('GET', `/admin/clients/${client_id}`)).status).toBe(200);
    expect((await revoke(service, asserting(client_id, token))).status).toBe(401);
  }
});
