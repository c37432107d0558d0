import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Request } from 'express';
import type { ListenerName } from '../http/listener.decorators.js';
import { networkOf, UNKNOWN_NETWORK } from '../network.js';

export interface TokenIds {
  jti: string;
  /** Absent for a token of a trusted issuer, which may use an email address as the subject. */
  sub?: string;
  client_id?: string;
}

export interface RequestTrace {
  span<Result>(name: string, attributes: Record<string, string>, work: () => Promise<Result>): Promise<Result>;
  end(request: FinishedRequest): void;
}

/**
 * Folders of higher levels add their own facts by declaration merging, as http/callers/operator-credentials.ts does. A
 * class, because V8 gives each object literal with a getter its own shape, which costs 40 µs per request.
 */
export class RequestContext {
  /** Never the caller's, so that no caller chooses the id of an audit event or of a line of another request. */
  readonly id = randomUUID();
  /** The id by which the caller knows the request, if it sends one. */
  readonly callerRequestId: string | undefined;
  readonly method: string;
  /** When the head of the request had arrived, by performance.now(). */
  readonly receivedAt = performance.now();
  /** The requested grant type. It is registered, never an unknown value from the caller. */
  grant: string | undefined = undefined;
  /** The hint of each `invalid_grant` of this grant. */
  invalidGrantHint: string | undefined = undefined;
  clientId: string | undefined = undefined;
  organizationId: string | undefined = undefined;
  /** The token that the request presents, if its signature is valid. */
  token: TokenIds | undefined = undefined;
  resourceServerId: string | undefined = undefined;
  error: string | undefined = undefined;
  /** Why the request failed, or why its token is inactive, for the operator alone. */
  reason: string | undefined = undefined;
  cause: unknown = undefined;
  /**
   * By performance.now(). It begins with the first statement, because a caller may take seconds to send a body, and again
   * after a change of the registry.
   */
  deadline: number | undefined = undefined;
  trace: RequestTrace | undefined = undefined;

  constructor(
    readonly listener: ListenerName,
    private readonly request: IncomingMessage,
  ) {
    this.callerRequestId = callerRequestIdOf(request);
    this.method = request.method ?? '';
  }

  /** The id in the response, which the log has too. */
  get responseId(): string {
    return this.callerRequestId ?? this.id;
  }

  /** By TRUST_PROXY. A getter, because few requests need it and computing it costs time. */
  get ip(): string {
    return (this.request as Request).ip ?? '';
  }

  finish(status: number): FinishedRequest {
    return Object.assign(this, { route: this.matchedRoute, status, milliseconds: performance.now() - this.receivedAt });
  }

  /** The pattern of the matched route, as callers know it; `none` before a route has matched. */
  get matchedRoute(): string {
    const path: unknown = (this.request as Request).route?.path;
    return typeof path === 'string' ? path.replace(/\/$/, '') || '/' : 'none';
  }

  /** For comparisons. An unknown network gets a new text each time, so that no comparison finds it again. */
  get network(): string {
    const network = networkOf(this.ip);
    return network === UNKNOWN_NETWORK ? `${network} ${randomUUID()}` : network;
  }
}

/**
 * All values of a header. `headersDistinct` throws at a field `__proto__` in some versions of node.
 *
 * @param name in lower case
 */
export function headerValues({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}

type OptionalFacts = Pick<
  RequestContext,
  | 'callerRequestId'
  | 'grant'
  | 'clientId'
  | 'organizationId'
  | 'token'
  | 'resourceServerId'
  | 'error'
  | 'reason'
  | 'cause'
  | 'trace'
>;

export interface FinishedRequest extends Pick<RequestContext, 'id' | 'listener' | 'method'>, Partial<OptionalFacts> {
  /** The pattern of the route, `none` if no route matched. It is never the path that the caller sent. */
  route: string;
  /** 499 if the caller left before the response was written. */
  status: number;
  /** From the head of the request to the last byte of the response. */
  milliseconds: number;
}

export function traced<Result>(
  name: string,
  attributes: Record<string, string>,
  work: () => Promise<Result>,
): Promise<Result> {
  const trace = storage.getStore()?.trace;
  return trace ? trace.span(name, attributes, work) : work();
}

/** Time for all statements of one request together, so that a caller waits at most 3 s for the database. */
export const STATEMENTS_TIMEOUT_MS = 2_800;

const storage = new AsyncLocalStorage<RequestContext>();

export const requestContext = {
  /** The context of the current request; `undefined` outside of requests, as in a command. */
  current(): RequestContext | undefined {
    return storage.getStore();
  },

  /** @throws Error outside of a request */
  required(): RequestContext {
    const context = storage.getStore();
    if (!context) throw new Error('there is no current request');
    return context;
  },

  /** The time that the statements of the current request have left; `undefined` outside of requests. */
  remainingMs(): number | undefined {
    const context = storage.getStore();
    if (!context) return undefined;
    context.deadline ??= performance.now() + STATEMENTS_TIMEOUT_MS;
    return context.deadline - performance.now();
  },

  set(facts: Partial<RequestContext>): void {
    const context = storage.getStore();
    if (context) Object.assign(context, facts);
  },

  run<Result>(context: RequestContext, work: () => Result): Result {
    return storage.run(context, work);
  },
};

/** Long enough for a UUID or a trace id, too short for markup or a log line. */
const REQUEST_ID = /^[A-Za-z0-9_.-]{8,64}$/;
/** `traceparent` of W3C Trace Context, with the trace id, the parent id and the flags. */
export const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

function callerRequestIdOf({ headers }: IncomingMessage): string | undefined {
  const { 'x-request-id': given, traceparent } = headers;
  if (typeof given === 'string' && REQUEST_ID.test(given)) return given;
  return typeof traceparent === 'string' ? TRACEPARENT.exec(traceparent)?.[1] : undefined;
}
