import { createRemoteJWKSet, customFetch, jwtVerify } from 'jose';
import type { Processes } from './processes.js';

/** Longer than the service waits for its database, so that a slow response is not counted as a lost one. */
const TIMEOUT_MS = 15_000;
/** From the moment when the database serves again until every process has connected to it. */
const RECONNECT_MS = 5_000;

export interface Call {
  /** The name in the report. */
  operation: string;
  method?: string;
  path: string;
  isManagement?: boolean;
  headers?: Record<string, string>;
  body?: object | string;
  /** The error response that the request must get. */
  expected?: { status: number; error: string };
}

/** What the caller learns from a response. Status 0 means that there is none. */
interface Reply {
  status: number;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a response has any fields
  json: any;
  /** Name and value of each cookie, as a browser returns them. */
  cookies: string;
  location: string;
  requestId: string;
}

/** An error response that the sequence of a caller did not expect. It is counted, and ends the sequence. */
export class CallFailed extends Error {}

/** Sends requests to the processes in turn, and counts and checks the responses. */
export class Caller {
  readonly operations = new Map<string, { requests: number; wantedErrors: number }>();
  readonly failures: { call: string; status: number; requestId: string; from: number; to: number }[] = [];
  readonly outages: { from: number; to: number }[] = [];
  readonly wrong: string[] = [];
  /** Verified tokens by the id of their key. */
  readonly tokensByKey = new Map<string, number>();
  private readonly keys = createRemoteJWKSet(new URL('http://localhost/.well-known/jwks.json'), {
    cooldownDuration: 0, // fetches the keys again for each unknown key id, as after a rotation
    [customFetch]: (_, options) => fetch(`${this.processes.next().url}/.well-known/jwks.json`, options as RequestInit),
  });

  constructor(private readonly processes: Processes) {}

  async send(call: Call): Promise<Reply> {
    const { operation, method = 'POST', path, expected } = call;
    const from = performance.now();
    const reply = await this.exchange(call);
    const to = performance.now();
    const figures = this.operations.get(operation) ?? { requests: 0, wantedErrors: 0 };
    this.operations.set(operation, figures);
    figures.requests++;
    if (expected && reply.status === expected.status && reply.json?.error === expected.error) figures.wantedErrors++;
    else if (reply.status === 0 || reply.status >= 400) {
      const name = `${operation}: ${method} ${path}: ${reply.json?.error ?? reply.text.slice(0, 100)}`;
      this.failures.push({ call: name, status: reply.status, requestId: reply.requestId, from, to });
      throw new CallFailed(`${reply.status} ${name}`);
    } else if (expected) this.wrong.push(`${operation}: got ${reply.status} in place of ${expected.status}`);
    return reply;
  }

  /** Verifies an access token as a resource server does. */
  async verify(operation: string, token: string, claims: Record<string, unknown>): Promise<void> {
    const options = { issuer: 'http://localhost', typ: 'at+jwt' };
    const { protectedHeader, payload } = await jwtVerify(token.slice(token.indexOf(':') + 1), this.keys, options);
    const kid = protectedHeader.kid ?? '';
    this.tokensByKey.set(kid, (this.tokensByKey.get(kid) ?? 0) + 1);
    this.compare(operation, payload, claims);
  }

  compare(operation: string, actual: Record<string, unknown>, values: Record<string, unknown>): void {
    for (const [name, value] of Object.entries(values))
      if (actual[name] !== value) this.wrong.push(`${operation}: ${name} is ${actual[name]} in place of ${value}`);
  }

  /** Only a 503 can be explained, by an outage of the database. */
  unexplained() {
    return this.failures.filter(
      ({ status, from, to }) =>
        status !== 503 || !this.outages.some((outage) => to >= outage.from && from <= outage.to + RECONNECT_MS),
    );
  }

  private async exchange({ method = 'POST', path, isManagement, headers = {}, body }: Call): Promise<Reply> {
    const process = this.processes.next();
    try {
      const response = await fetch((isManagement ? process.managementUrl : process.url) + path, {
        method,
        headers,
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        redirect: 'manual',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const text = await response.text();
      const cookies = response.headers.getSetCookie().map((line) => line.split(';', 1)[0]);
      return {
        status: response.status,
        text,
        json: response.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : undefined,
        cookies: cookies.join('; '),
        location: response.headers.get('location') ?? '',
        requestId: response.headers.get('x-request-id') ?? '',
      };
    } catch (error) {
      const { message, cause } = error as Error;
      return { status: 0, text: `${message}: ${cause}`, json: undefined, cookies: '', location: '', requestId: '' };
    }
  }
}
