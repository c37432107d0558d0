import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The system that a real class of the extension calls. */
export interface Upstream {
  /** The environment variable with the URL of the system, which the class reads when the service starts. */
  variable: string;
  /** Responds to a request as the system does. If omitted, with 200 and `{}`. */
  respond?: (request: IncomingMessage, response: ServerResponse) => void;
}

/** How the system fails. */
export type UpstreamFailure = 'responds with 500' | 'closes the connection' | 'does not respond';

/** A local server in the place of the system. */
export class UpstreamServer {
  private failure: UpstreamFailure | undefined;
  /** The URL and the body of each request. */
  private readonly received: string[] = [];

  private readonly server = createServer((request, response) => {
    const index = this.received.push(`${request.url} `) - 1;
    request.on('data', (chunk) => {
      this.received[index] += chunk;
    });
    if (this.failure === 'closes the connection') request.socket.destroy();
    else if (this.failure === 'responds with 500') response.writeHead(500).end();
    else if (this.failure === undefined) this.respond(request, response);
  });

  private readonly earlierUrl: string | undefined;

  private constructor(private readonly upstream: Upstream) {
    this.earlierUrl = process.env[upstream.variable];
  }

  /** Starts the server, and sets the variable to its URL until the server stops. */
  static async start(upstream: Upstream): Promise<UpstreamServer> {
    const started = new UpstreamServer(upstream);
    await new Promise<void>((resolve) => started.server.listen(0, '127.0.0.1', resolve));
    const { port } = started.server.address() as AddressInfo;
    process.env[upstream.variable] = `http://127.0.0.1:${port}`;
    return started;
  }

  /** Does work, and returns the requests meanwhile, each as a text. With `failure`, the system fails meanwhile. */
  async during<Result>(
    work: () => Promise<Result>,
    failure?: UpstreamFailure,
  ): Promise<{ result: Result; received: string[] }> {
    const first = this.received.length;
    this.failure = failure;
    try {
      const result = await work();
      return { result, received: this.received.slice(first) };
    } finally {
      this.failure = undefined;
    }
  }

  stop(): void {
    const { variable } = this.upstream;
    if (this.earlierUrl === undefined) delete process.env[variable];
    else process.env[variable] = this.earlierUrl;
    this.server.close();
    this.server.closeAllConnections();
  }

  private respond(request: IncomingMessage, response: ServerResponse): void {
    if (this.upstream.respond) this.upstream.respond(request, response);
    else request.on('end', () => response.setHeader('content-type', 'application/json').end('{}'));
  }
}
