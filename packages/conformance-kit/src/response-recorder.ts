import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Method, replaceMethod } from './shared-patch.js';
import type { TestService } from './test-service.js';

/** Node publishes this event for each request whose headers a server of this process has read. */
export const REQUEST_START = 'http.server.request.start';

/**
 * Runs work, and returns the bodies of the responses that a service sent to any HTTP client meanwhile, and the bearer
 * tokens of the requests.
 */
export async function recordResponses<Result>(
  { port, managementPort }: TestService,
  work: () => Promise<Result>,
): Promise<{ result: Result; texts: string[]; bearers: string[] }> {
  const bodies: Buffer[][] = [];
  const bearers = new Set<string>();
  const record = (message: unknown) => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
    if (![port, managementPort].includes(request.socket.localPort ?? 0)) return;
    const { authorization } = request.headers;
    if (authorization?.startsWith('Bearer ')) bearers.add(authorization);
    const body: Buffer[] = [];
    bodies.push(body);
    copyBody(response, body);
  };
  subscribe(REQUEST_START, record);
  try {
    const result = await work();
    return { result, texts: bodies.map((body) => Buffer.concat(body).toString()), bearers: [...bearers] };
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
