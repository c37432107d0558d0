import type { Route } from '../../http/routes/declared-routes.js';

/** The names of the operations in generated clients. A changed name breaks the code that calls it. */
const OPERATION_IDS: Record<string, string> = {
  'post /v2/customer/token': 'createCustomerToken',
  'delete /v2/customer/token': 'endCustomerToken',
  'post /v2/customer/{organization_id}/{group_id}/token': 'createCustomerTokenOfGroup',
  'post /customer/': 'createCustomerTokenAsAgent',
  'post /v2/customer/identity_transfer': 'createTransferToken',
  'get /v2/customer/info': 'getCustomerTokenInfo',
  'post /v2/customer/revoke': 'revokeCustomerToken',
  'post /v2/customer/forget': 'forgetBrowser',
  'post /v2/customer/end_sessions': 'endSessions',
  'post /v2/customer/export': 'exportCustomer',
  'post /v2/customer/erase': 'eraseCustomer',
  'get /': 'showAuthorizationPage',
  'post /sign-in': 'signIn',
  'post /sign-out': 'signOut',
  'post /consent': 'consent',
  'post /v2/token': 'createAgentToken',
  'delete /v2/token': 'endAgentToken',
  'get /.well-known/jwks.json': 'getPublicKeys',
  'get /.well-known/oauth-authorization-server': 'getServerMetadata',
  'get /openapi.json': 'getOpenApiDocument',
  'post /oauth2/introspect': 'introspectToken',
  'post /oauth2/revoke': 'revokeToken',
  'get /oauth2/revocations': 'readRevocations',
  'get /oauth2/events': 'readEvents',
  'get /health/live': 'checkLiveness',
  'get /health/ready': 'checkReadiness',
  'get /metrics': 'readMetrics',
  'get /admin/customers': 'findCustomer',
  'get /admin/customers/{entity_id}': 'getCustomer',
  'delete /admin/customers/{entity_id}': 'deleteCustomer',
  'get /admin/customers/{entity_id}/export': 'exportCustomerAsOperator',
  'post /admin/customers/{entity_id}/end_sessions': 'endSessionsAsOperator',
  'delete /admin/customers/{entity_id}/browsers/{browser_id}': 'deleteBrowser',
  'delete /admin/customers/{entity_id}/refresh-tokens/{session_id}': 'deleteRefreshToken',
  'post /admin/clients/{client_id}/secret': 'replaceClientSecret',
  'delete /admin/organizations/{id}/offboarding': 'cancelOffboarding',
};

const ENTRY_ROUTE = /^\/admin\/([a-z-]+)(\/\{key\})?$/;
const VERBS: Record<string, string> = { post: 'create', put: 'replace', patch: 'change', delete: 'delete' };

export function operationIdOf({ method, path }: Route): string {
  const known = OPERATION_IDS[`${method} ${path}`];
  if (known) return known;
  const [, list, key] = ENTRY_ROUTE.exec(path) ?? [];
  if (list === undefined) return camelCase(`${method} ${path}`); // a route of an extension
  if (method === 'get' && !key) return camelCase(`list ${list}`);
  return camelCase(`${VERBS[method] ?? method} ${list.replace(/s$/, '')}`);
}

function camelCase(text: string): string {
  const [first = '', ...others] = text.match(/[A-Za-z0-9]+/g) ?? [];
  return first + others.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}
