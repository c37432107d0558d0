import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Method, replaceMethod } from './replace-method.js';
import type { SentRequest } from './request.js';
import { textsIn } from './secret-search.js';
import type { TestService } from './test-service.js';

/** Node publishes this event for each request whose headers a server of this process has read. */
export const REQUEST_START = 'http.server.request.start';

/** A request, with what a service received and sent while the request was created. */
export interface Traffic {
  sent: SentRequest;
  /** The methods and paths of the requests: `POST /v2/customer/token`. */
  requests: string[];
  /** The texts in the bodies of the responses. */
  texts: string[];
  /** The `Authorization` headers with bearer tokens. */
  bearers: string[];
  /** The customers that were created. */
  customers: string[];
}

/** Creates a request, and records the requests that any HTTP client sends to a service meanwhile. */
export async function recordTraffic(
  { port, managementPort, audit }: TestService,
  create: () => Promise<SentRequest>,
): Promise<Traffic> {
  const requests: string[] = [];
  const bodies: Buffer[][] = [];
  const bearers = new Set<string>();
  const before = audit.length;
  const record = (message: unknown) => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
    if (![port, managementPort].includes(request.socket.localPort ?? 0)) return;
    const { authorization } = request.headers;
    if (authorization?.startsWith('Bearer ')) bearers.add(authorization);
    requests.push(`${request.method} ${request.url?.split('?')[0]}`);
    const body: Buffer[] = [];
    bodies.push(body);
    copyBody(response, body);
  };
  subscribe(REQUEST_START, record);
  try {
    const sent = await create();
    const texts = bodies.flatMap((body) => textsOf(Buffer.concat(body).toString()));
    const created = audit.slice(before).filter(({ event }) => event === 'identity.created');
    const customers = created.flatMap(({ subject }) => (subject?.id === undefined ? [] : [subject.id]));
    return { sent, requests, texts, bearers: [...bearers], customers };
  } finally {
    unsubscribe(REQUEST_START, record);
  }
}

function copyBody(response: ServerResponse, body: Buffer[]): void {
  const copying =
    (send: Method): Method =>
    (...parameters) => {
      const [chunk] = parameters;
      if (typeof chunk === 'string' || chunk instanceof Uint8Array) body.push(Buffer.from(chunk as string));
      return send(...parameters);
    };
  for (const name of ['write', 'end']) replaceMethod(response, name, copying);
}

function textsOf(body: string): string[] {
  try {
    return textsIn(JSON.parse(body));
  } catch {
    return [body];
  }
}
