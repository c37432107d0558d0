import { INJECTED_HEADER, MARKUP } from '../../packages/conformance-kit/src/fuzz/hostile-values.js';
import { type OpenApiResponses, type ReceivedResponse } from '../../packages/conformance-kit/src/openapi-responses.js';
import { violationOfError } from './error-rules.js';
import { type FuzzRequest, headerOf, type Port } from './fuzz-request.js';
import type { Operation } from './operations.js';
import { Ownership } from './ownership.js';
import { SMUGGLED_ID } from './raw-shapes.js';
import { type Reply, replyHeader } from './reply.js';

/** The hint of a response to bytes that are not an HTTP request. Any route may return it. */
const BROKEN = '"error_hint":"HTTP: malformed or incomplete request"';
/** Routes whose responses are public and may be cached. */
const STORABLE = /^\/(\.well-known\/|page\.css|docs|openapi\.json)/;

/** Checks every response of a run. */
export class Oracle {
  private readonly ownership = new Ownership();

  constructor(
    private readonly documented: OpenApiResponses,
    private readonly operations: Operation[],
  ) {}

  /** The violation in the response to a request, or `undefined`. */
  violationOf(request: FuzzRequest, reply: Reply): string | undefined {
    const { port, target } = request;
    const method = request.method.trim();
    const path = pathOf(target);
    if (this.isBroken(reply)) return this.violationOfAny(reply) ?? violationOfError(reply, request);
    const response = receivedResponse(port, method, path, reply);
    return (
      this.violationOfAny(reply) ??
      (reply.status >= 400 ? violationOfError(reply, request) : this.violationOfSuccess(request, path, reply)) ??
      this.violationOfRoute(response) ??
      (['HEAD', 'OPTIONS'].includes(method) ? undefined : this.documented.violationOf(response)) ??
      this.ownership.violationOf(request, path, reply)
    );
  }

  /** The violation in a response to bytes that are not a known request, or `undefined`. */
  violationOfRaw(reply: Reply): string | undefined {
    return this.violationOfAny(reply) ?? (reply.status >= 400 ? violationOfError(reply) : undefined);
  }

  isBroken({ text }: Reply): boolean {
    return text.includes(BROKEN);
  }

  private violationOfAny(reply: Reply): string | undefined {
    if (reply.status >= 500) return `${reply.status}`;
    const id = replyHeader(reply, 'x-request-id');
    if (!id) return 'no X-Request-Id';
    if (id === SMUGGLED_ID) return 'a smuggled request got a response';
    if (replyHeader(reply, 'x-content-type-options') !== 'nosniff') return 'no nosniff';
    if (replyHeader(reply, INJECTED_HEADER) !== undefined) return 'a header of the caller is in the response';
    const isPage = replyHeader(reply, 'content-type')?.startsWith('text/html');
    return isPage && reply.text.includes(MARKUP) ? 'markup of the caller is on the page' : undefined;
  }

  private violationOfSuccess(request: FuzzRequest, path: string, reply: Reply): string | undefined {
    const { port, forgedBearer, forgedToken } = request;
    const method = request.method.trim();
    if (!STORABLE.test(path) && replyHeader(reply, 'cache-control') !== 'no-store')
      return 'a response that may be cached';
    const allowedOrigin = replyHeader(reply, 'access-control-allow-origin');
    if (allowedOrigin !== undefined && allowedOrigin !== '*' && allowedOrigin !== headerOf(request, 'origin')?.trim())
      return `CORS for ${allowedOrigin}`;
    if (method === 'OPTIONS') return undefined;
    const operation = this.operations.find(
      (each) => each.port === port && each.method === method && each.path === path.replace(/([^/])\/$/, '$1'),
    );
    const wantsBearer =
      operation?.security.length && operation.security.every((each) => ['bearer', 'operator'].includes(each));
    if (forgedBearer && wantsBearer) return 'a forged bearer was accepted';
    const isAlive = operation?.path === '/oauth2/introspect' && JSON.parse(reply.text).active;
    return forgedToken && isAlive ? 'a forged token is active' : undefined;
  }

  /** Checks that the routes of the service and of the OpenAPI document are the same. */
  private violationOfRoute(response: ReceivedResponse): string | undefined {
    const { method, status } = response;
    if (['HEAD', 'OPTIONS'].includes(method)) return undefined;
    const methods = this.documented.methodsAt(response);
    if (!methods) return [404, 400].includes(status) ? undefined : `${status} for an unknown route`;
    if (Object.hasOwn(methods, method.toLowerCase()))
      return status === 405 ? '405 for a method of the document' : undefined;
    return [405, 400].includes(status) ? undefined : `${status} for another method`;
  }
}

function receivedResponse(port: Port, method: string, path: string, reply: Reply): ReceivedResponse {
  const type = replyHeader(reply, 'content-type')?.split(';')[0] ?? '';
  return { isManagement: port === 'management', method, path, status: reply.status, type, text: reply.text };
}

/** The path that the service derives from a request target. */
function pathOf(target: string): string {
  if (target.includes('#')) return '';
  // not `URL.canParse`, which accepts longer hosts than the constructor
  if (!target.startsWith('/')) return /^https?:\/\//i.test(target) ? (URL.parse(target)?.pathname ?? '') : '';
  return target.split('?', 1)[0] ?? '';
}
