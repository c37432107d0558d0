import { violationOfErrorResponse } from '../../packages/conformance-kit/src/error-response.js';
import { FUZZ_MARKER } from '../../packages/conformance-kit/src/fuzz/hostile-values.js';
import { ACME_AGENT, BACKEND_SECRET, RIVAL_AGENT } from '../support/test-registry.js';
import { ADMIN_TOKEN, RESOURCE_SERVER } from './cast.js';
import { type FuzzRequest, headerOf } from './fuzz-request.js';
import { type Reply, replyCookies, replyHeader } from './reply.js';

const SECRETS = [BACKEND_SECRET, ADMIN_TOKEN, RESOURCE_SERVER.secret, ACME_AGENT.password, RIVAL_AGENT.password];

/** The violation of protocol §2.11 in an error response. The OpenAPI checks validate its schema. */
export function violationOfError(reply: Reply, request?: FuzzRequest): string | undefined {
  const { status, text } = reply;
  const header = (name: string) => replyHeader(reply, name);
  const violation = violationOfErrorResponse({ status, text, cookies: replyCookies(reply), header });
  if (violation !== undefined) return violation;
  const leaked = secretsOf(request).find((secret) => text.includes(secret));
  if (leaked !== undefined) return `an error response that contains a secret: ${leaked}`;
  if (!header('content-type')?.startsWith('application/json') || text === '') return undefined;
  const body = JSON.parse(text);
  const hint = String(body.error_hint).replace(/^.*: unknown (field|parameter)$/, ''); // The hint must name it.
  if (`${hint}${body.error_description}`.includes(FUZZ_MARKER)) return 'a value of the request in the error';
  return undefined;
}

function secretsOf(request: FuzzRequest | undefined): string[] {
  if (!request) return SECRETS;
  const bearer = headerOf(request, 'authorization')?.split(' ')[1] ?? '';
  const [, cookie = ''] = /__svc_cst=(\w{64})/.exec(headerOf(request, 'cookie') ?? '') ?? [];
  return [...SECRETS, bearer, cookie].filter((secret) => secret.length > 20);
}
