import { MARK } from '../../src/testing/fuzz/hostile-values.js';
import { ACME_AGENT, BACKEND_SECRET, RIVAL_AGENT } from '../support/registry.js';
import { ADMIN_TOKEN, RESOURCE_SERVER } from './cast.js';
import { type FuzzRequest, headerOf } from './fuzz-request.js';
import { type Reply, replyCookies, replyHeader } from './reply.js';

/** The statuses of each error (contract, section 6). */
const STATUSES: Record<string, number[]> = {
  invalid_request: [400, 408, 415, 431],
  invalid_token: [401],
  invalid_grant: [400],
  unauthorized_client: [400],
  unsupported_grant_type: [400],
  insufficient_scope: [403],
  invalid_client: [401],
  not_found: [404],
  method_not_allowed: [405],
  conflict: [409],
  payload_too_large: [413],
  temporarily_unavailable: [429],
};
const NO_HINT = ['invalid_grant', 'invalid_token'];
const SECRETS = [BACKEND_SECRET, ADMIN_TOKEN, RESOURCE_SERVER.secret, ACME_AGENT.password, RIVAL_AGENT.password];

/** What is wrong about an error as contract 6 wants it; its schema is looked at elsewhere. */
export function faultOfError(reply: Reply, request?: FuzzRequest): string | undefined {
  const { status, text } = reply;
  if (replyCookies(reply).some((line) => line.startsWith('__svc_'))) return 'a refusal that gives an identity';
  if (replyHeader(reply, 'cache-control') !== 'no-store') return 'a refusal that may be stored';
  if (status === 401 && !replyHeader(reply, 'www-authenticate')) return '401 without WWW-Authenticate';
  if (status === 405 && !replyHeader(reply, 'allow')) return '405 without Allow';
  if (status === 429 && !replyHeader(reply, 'retry-after')) return '429 without Retry-After';
  const told = secretsOf(request).find((secret) => text.includes(secret));
  if (told !== undefined) return `a refusal that tells a secret: ${told}`;
  if (!replyHeader(reply, 'content-type')?.startsWith('application/json') || text === '') return undefined;
  const body = JSON.parse(text);
  if (!STATUSES[body.error]?.includes(status)) return `${body.error} with ${status}`;
  if (body.oauth_exception !== body.error) return 'oauth_exception is not error';
  if (body.exception_description !== body.error_description) return 'two descriptions';
  if (body.request_id !== replyHeader(reply, 'x-request-id')) return 'request_id is not X-Request-Id';
  if (NO_HINT.includes(body.error) && 'error_hint' in body) return `a hint with ${body.error}`;
  const hint = String(body.error_hint).replace(/^.*: unknown field$/, ''); // a parameter is named, as it must be
  if (`${hint}${body.error_description}`.includes(MARK)) return 'a value of the request in the error';
  return undefined;
}

function secretsOf(request: FuzzRequest | undefined): string[] {
  if (!request) return SECRETS;
  const bearer = headerOf(request, 'authorization')?.split(' ')[1] ?? '';
  const [, cookie = ''] = /__svc_cst=(\w{64})/.exec(headerOf(request, 'cookie') ?? '') ?? [];
  return [...SECRETS, bearer, cookie].filter((secret) => secret.length > 20);
}
