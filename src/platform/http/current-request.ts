import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Surface } from './surfaces.js';

/** What is known of a request beyond its bytes; whoever learns more writes it here, for the log and the metrics. */
export interface RequestRecord {
  /** What `X-Request-Id`, the log and an error's `request_id` call it. */
  readonly id: string;
  readonly surface: Surface;
  readonly method: string;
  /** The caller's address, as TRUST_PROXY lets it be known. */
  readonly address: string;
  /** A grant of this service; never a name that a caller made up. */
  grant?: string;
  /** A registered application. */
  clientId?: string;
  /** A registered organization. */
  organizationId?: string;
  /** The error that was answered, and what only the operator is told of it. */
  error?: string;
  reason?: string;
  /** What went wrong on our side. */
  fault?: unknown;
  /** When it first asked the database, by performance.now(). */
  databaseSince?: number | undefined;
  /** Its spans, where it is traced. */
  trace?: RequestTrace;
}

/** A request that is over. */
export interface FinishedRequest extends RequestRecord {
  /** The pattern of its address, `none` where there is no such address: never the address itself. */
  route: string;
  /** 499 where the caller left before the answer. */
  status: number;
  /** From its headers to the last byte of its answer. */
  milliseconds: number;
}

/** The spans of one request. */
export interface RequestTrace {
  /** Does a part of the request's work as a span of its own, below the one it is part of. */
  span<Result>(name: string, attributes: Record<string, string>, work: () => Promise<Result>): Promise<Result>;
  end(request: FinishedRequest): void;
}

/** Ids of callers and meshes that are taken over: enough for a UUID or a trace id, too little for markup or a log line. */
const REQUEST_ID = /^[A-Za-z0-9_.-]{8,64}$/;
/** `traceparent` of W3C Trace Context, whose second part names the trace. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

const requests = new AsyncLocalStorage<RequestRecord>();

/** The request that this code runs for; `undefined` where it runs for none, as in a command. */
export function currentRequest(): RequestRecord | undefined {
  return requests.getStore();
}

/** Milliseconds since the current request first asked the database, which is now if it has not; 0 where there is none. */
export function sinceFirstStatement(): number {
  const record = requests.getStore();
  if (!record) return 0;
  const now = performance.now();
  record.databaseSince ??= now;
  return now - record.databaseSince;
}

/** Adds to what is known of the current request, where there is one. */
export function noteRequest(facts: Partial<RequestRecord>): void {
  const record = requests.getStore();
  if (record) Object.assign(record, facts);
}

/** Does what belongs to a request, however often it waits. */
export function asCurrentRequest(record: RequestRecord, work: () => void): void {
  requests.run(record, work);
}

/** A request's id: the one it brings in `X-Request-Id`, the trace it belongs to, or a new one. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const { 'x-request-id': given, traceparent } = headers;
  if (typeof given === 'string' && REQUEST_ID.test(given)) return given;
  return (typeof traceparent === 'string' && TRACEPARENT.exec(traceparent)?.[1]) || randomUUID();
}
