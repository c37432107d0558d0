import { INJECTED_HEADER, MARKUP } from '../../src/testing/fuzz/hostile-values.js';
import { type OpenApiResponses, type ReceivedResponse } from '../../src/testing/openapi-responses.js';
import { violationOfError } from './error-rules.js';
import { type FuzzRequest, headerOf, type Port } from './fuzz-request.js';
import type { Operation } from './operations.js';
import { Ownership } from './ownership.js';
import { SMUGGLED_ID } from './raw-shapes.js';
import { type Reply, replyHeader } from './reply.js';

/** The hint of an answer to bytes that are no request; any address may give it. */
const BROKEN = '"error_hint":"HTTP: not a request that can be read"';
/** Answers that are public, and may be stored. */
const STORABLE = /^\/(\.well-known\/|page\.css|docs|openapi\.json)/;

/** Judges every answer of a run. */
export class Oracle {
  private readonly ownership = new Ownership();

  constructor(
    private readonly documented: OpenApiResponses,
    private readonly operations: Operation[],
  ) {}

  /** What is wrong about the answer to a request; `undefined` when nothing is. */
  violationOf(request: FuzzRequest, reply: Reply): string | undefined {
    const { port, target } = request;
    const method = request.method.trim();
    const path = pathOf(target);
    if (this.isBroken(reply)) return this.violationOfAny(reply) ?? violationOfError(reply, request);
    const answer = answerOf(port, method, path, reply);
    return (
      this.violationOfAny(reply) ??
      (reply.status >= 400 ? violationOfError(reply, request) : this.violationOfSuccess(request, path, reply)) ??
      this.violationOfAddress(answer) ??
      (['HEAD', 'OPTIONS'].includes(method) ? undefined : this.documented.violationOf(answer)) ??
      this.ownership.violationOf(request, path, reply)
    );
  }

  /** The same for bytes of which nobody can say what request they are. */
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
    if (id === SMUGGLED_ID) return 'a smuggled request was answered';
    if (replyHeader(reply, 'x-content-type-options') !== 'nosniff') return 'no nosniff';
    if (replyHeader(reply, INJECTED_HEADER) !== undefined) return 'a header of the caller is in the answer';
    const isPage = replyHeader(reply, 'content-type')?.startsWith('text/html');
    return isPage && reply.text.includes(MARKUP) ? 'markup of the caller is on the page' : undefined;
  }

  private violationOfSuccess(request: FuzzRequest, path: string, reply: Reply): string | undefined {
    const { port, forgedBearer, forgedToken } = request;
    const method = request.method.trim();
    if (!STORABLE.test(path) && replyHeader(reply, 'cache-control') !== 'no-store')
      return 'an answer that may be stored';
    const shown = replyHeader(reply, 'access-control-allow-origin');
    if (shown !== undefined && shown !== '*' && shown !== headerOf(request, 'origin')?.trim())
      return `CORS for ${shown}`;
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

  /** An address of the document is one of the service, and the other way round. */
  private violationOfAddress(answer: ReceivedResponse): string | undefined {
    const { method, status } = answer;
    if (['HEAD', 'OPTIONS'].includes(method)) return undefined;
    const methods = this.documented.methodsAt(answer);
    if (!methods) return [404, 400].includes(status) ? undefined : `${status} at an address that is none`;
    if (Object.hasOwn(methods, method.toLowerCase()))
      return status === 405 ? '405 for a method of the document' : undefined;
    return [405, 400].includes(status) ? undefined : `${status} for another method`;
  }
}

function answerOf(port: Port, method: string, path: string, reply: Reply): ReceivedResponse {
  const type = replyHeader(reply, 'content-type')?.split(';')[0] ?? '';
  return { isManagement: port === 'management', method, path, status: reply.status, type, text: reply.text };
}

/** The path that the service takes a target for. */
function pathOf(target: string): string {
  if (target.includes('#')) return '';
  if (!target.startsWith('/'))
    return /^https?:\/\//i.test(target) && URL.canParse(target) ? new URL(target).pathname : '';
  return target.split('?', 1)[0] ?? '';
}
