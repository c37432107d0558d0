import { once } from 'node:events';
import { type ClientRequestArgs, request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { TestResponse } from './test-service.js';

/** A TCP connection, for bytes that no HTTP client would send. */
export class RawConnection {
  readonly localPort: number | undefined;
  /** Whether the service has reset the connection instead of closing it. */
  wasReset = false;
  private text = '';
  private readonly ended: Promise<void>;

  private constructor(private readonly socket: Socket) {
    this.localPort = socket.localPort;
    socket.on('data', (bytes) => {
      this.text += bytes.toString('latin1');
    });
    socket.on('error', () => {
      this.wasReset = true;
    });
    this.ended = new Promise((resolve) => socket.once('close', () => resolve()));
  }

  /** With `allowHalfOpen`, the client keeps its side open when the service closes the other. */
  static open(url: string, { allowHalfOpen = false } = {}): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    return new Promise((resolve, reject) => {
      const socket = connect({ port: Number(port), host: hostname.replace(/^\[(.*)\]$/, '$1'), allowHalfOpen });
      socket.once('error', reject);
      socket.once('connect', () => resolve(new RawConnection(socket)));
    });
  }

  send(bytes: string | Buffer): this {
    this.socket.write(bytes);
    return this;
  }

  /** Waits until the kernel has accepted all bytes. */
  async sent(): Promise<void> {
    if (this.socket.writableLength > 0) await once(this.socket, 'drain');
  }

  /** Closes the client's side (FIN); the service can still respond. */
  end(): this {
    this.socket.end();
    return this;
  }

  /** Stops reading, so that the responses fill the buffers of the kernel and of the service. */
  stopReading(): this {
    this.socket.pause();
    return this;
  }

  /** The bytes received so far. */
  get receivedSoFar(): string {
    return this.text;
  }

  /** Resolves when the service has closed its side (FIN) or has reset the connection. */
  async serviceClosed(): Promise<void> {
    if (!this.socket.readableEnded && !this.socket.closed)
      await Promise.race([once(this.socket, 'end').catch(() => undefined), this.ended]);
  }

  /** Ends the connection as a crashed peer does. */
  abort(): void {
    this.socket.resetAndDestroy();
  }

  /** All bytes that arrived until the service closed the connection. */
  async received(): Promise<string> {
    await this.ended;
    return this.text;
  }

  /** The single response that arrived until the service closed the connection. */
  async response(): Promise<TestResponse> {
    return parseResponse(await this.received());
  }
}

/** Sends bytes and reads the single response. The bytes must make the service close the connection. */
export async function exchange(url: string, bytes: string | Buffer): Promise<TestResponse> {
  return (await RawConnection.open(url)).send(bytes).response();
}

/** The text of a request that closes its connection. A header may occur several times. */
export function rawRequest(start: string, body = '', headers: string[] = []): string {
  const lines = ['Host: auth.example', 'Connection: close', `Content-Length: ${Buffer.byteLength(body)}`, ...headers];
  return [`${start} HTTP/1.1`, ...lines, '', body].join('\r\n');
}

/** Sends a request with Node's HTTP client, which adds only the `Host` header. A body is sent in chunks. */
export function plainRequest(
  url: string,
  options: ClientRequestArgs,
  chunks?: (string | Buffer)[],
): Promise<TestResponse> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { agent: false, ...options }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => {
        const headers = Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
          values.map((value): [string, string] => [name, value]),
        );
        resolve(toResponse(response.statusCode ?? 0, new Headers(headers), Buffer.concat(parts).toString('utf8')));
      });
    });
    request.on('error', reject);
    for (const chunk of chunks ?? []) request.write(chunk);
    request.end();
  });
}

/**
 * All responses of one connection. Each that may have a body must have a Content-Length.
 *
 * @throws Error if the bytes are not whole HTTP responses
 */
export function parseResponses(text: string): TestResponse[] {
  const responses: TestResponse[] = [];
  for (let rest = text; rest !== ''; ) {
    const [head = '', status] = /^HTTP\/1\.1 (\d{3})(?: |\r).*?\r\n\r\n/s.exec(rest) ?? [];
    const hasBody = !/^(1\d\d|204|304)$/.test(status ?? '');
    const length = hasBody ? Number(/^content-length: *(\d+)/im.exec(head)?.[1]) : 0;
    if (head === '' || !(rest.length >= head.length + length))
      throw new Error(`no whole response: ${JSON.stringify(rest.slice(0, 300))}`);
    responses.push(parseResponse(rest.slice(0, head.length + length)));
    rest = rest.slice(head.length + length);
  }
  return responses;
}

function parseResponse(text: string): TestResponse {
  const [head = '', ...bodies] = text.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = lines.map((line): [string, string] => [
    line.slice(0, line.indexOf(':')),
    line.slice(line.indexOf(':') + 1),
  ]);
  const body = Buffer.from(bodies.join('\r\n\r\n'), 'latin1'); // a connection reads one character per byte
  return toResponse(Number(statusLine.split(' ')[1]), new Headers(headers), body.toString());
}

function toResponse(status: number, headers: Headers, text: string): TestResponse {
  const isJson = headers.get('content-type')?.startsWith('application/json') && text !== '';
  return { status, headers, cookies: headers.getSetCookie(), text, body: isJson ? JSON.parse(text) : undefined };
}
