import { AUTH_URL } from './assertion-issuer.js';
import { FORM } from './authorization-page.js';
import { manage } from './management-api.js';
import type { TestIssuer } from './test-issuer.js';
import { ACME, testRegistry } from './test-registry.js';
import type { TestResponse, TestService } from './test-service.js';

export const JWT_ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
/** A client and a resource server with keys of their own. */
export const SIGNING_CLIENT = 'acme-signing-backend';
export const SIGNING_SERVER = 'signing-api';
/** A client and a resource server with the identity of a service account. */
export const CLUSTER_CLIENT = 'acme-cluster-backend';
export const CLUSTER_SERVER = 'cluster-api';
export const BACKEND_ACCOUNT = 'system:serviceaccount:chat:backend';
export const API_ACCOUNT = 'system:serviceaccount:chat:api';

const keySetOf = ({ keys }: TestIssuer) => ({ keys: keys.map(({ jwk }) => jwk) });

/** The test registry with entries that authenticate by keys: their own, and those of a cluster. */
export function registryWithKeys(own: TestIssuer, cluster: TestIssuer, location: object = { jwks: keySetOf(cluster) }) {
  const registry = testRegistry();
  const client = { name: 'Backend', client_type: 'server', organization_id: ACME, scopes: ['customers:own'] };
  const federated = (subject: string) => ({ issuer: cluster.issuer, subject, ...location });
  registry.clients.push(
    { ...client, client_id: SIGNING_CLIENT, jwks: keySetOf(own) },
    { ...client, client_id: CLUSTER_CLIENT, federated: federated(BACKEND_ACCOUNT) },
  );
  const audiences = ['customer-api', 'agent-api'];
  registry.resource_servers.push(
    { id: SIGNING_SERVER, audiences, events: 'all', jwks: keySetOf(own) },
    { id: CLUSTER_SERVER, audiences, events: 'all', federated: federated(API_ACCOUNT) },
  );
  return registry;
}

/** A client's own assertion (RFC 7523 §3). A claim that is `undefined` is omitted. */
export function ownAssertion(
  keys: TestIssuer,
  now: number,
  claims: object = {},
  header: object = {},
  key = keys.keys[0],
): Promise<string> {
  const seconds = Math.floor(now / 1000);
  const omitted = { client_id: undefined, organization_id: undefined, scope: undefined };
  const usual = { iss: SIGNING_CLIENT, sub: SIGNING_CLIENT, aud: AUTH_URL, exp: seconds + 60 };
  return keys.sign(now, { ...omitted, ...usual, ...claims }, { typ: 'JWT', ...header }, key);
}

/** The projected token of a Kubernetes service account, with the claims and the header that the API server writes. */
export function accountToken(cluster: TestIssuer, now: number, claims: object = {}, header: object = {}) {
  const seconds = Math.floor(now / 1000);
  const omitted = { client_id: undefined, organization_id: undefined, scope: undefined };
  const usual = { sub: BACKEND_ACCOUNT, aud: [AUTH_URL], nbf: seconds, exp: seconds + 3_600 };
  const account = { 'kubernetes.io': { namespace: 'chat', serviceaccount: { name: 'backend', uid: 'a' } } };
  return cluster.sign(now, { ...omitted, ...account, ...usual, ...claims }, { typ: undefined, ...header });
}

/** The parameters of a request that authenticates by an assertion. */
export const asserting = (client_id: string, client_assertion: unknown, more: object = {}) => ({
  ...{ client_id, client_assertion_type: JWT_ASSERTION, client_assertion, ...more },
});

/** A request to a route that only an authenticated client gets another response than 401 from. */
export const revoke = (service: TestService, parameters: object, headers = {}): Promise<TestResponse> =>
  manage(service, 'POST', '/oauth2/revoke', headers, { token: 'dev:unknown', ...parameters });

export const introspect = (service: TestService, parameters: object, headers = {}): Promise<TestResponse> =>
  manage(service, 'POST', '/oauth2/introspect', headers, { token: 'dev:unknown', ...parameters });

export const asForm = (parameters: object): [Record<string, string>, string] => [
  { 'content-type': FORM },
  new URLSearchParams({ ...parameters }).toString(),
];
