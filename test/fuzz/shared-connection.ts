import { connect, type Socket } from 'node:net';
import { bytesOf, type FuzzRequest } from './fuzz-request.js';
import { type Reply, takeReply } from './reply.js';

interface Waiting {
  request: FuzzRequest;
  /** The number of checks since the request is the oldest one. */
  checks: number;
  resolve: (reply: Reply) => void;
  reject: (error: Error) => void;
}

/** A keep-alive connection with pipelined requests. */
export class SharedConnection {
  private readonly waiting: Waiting[] = [];
  private socket: Socket | undefined;
  private bytes: Buffer = Buffer.alloc(0);

  constructor(private readonly url: URL) {}

  ask(request: FuzzRequest): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ request, checks: 0, resolve, reject });
      this.socket ??= this.open();
      this.socket.write(bytesOf(request));
    });
  }

  /**
   * Whether the oldest request has waited for more than this number of checks. Checks are counted instead of time, so
   * that a pause of the fuzzer itself counts as one check only.
   */
  isSilentFor(checks: number): boolean {
    const [oldest] = this.waiting;
    return oldest !== undefined && ++oldest.checks > checks;
  }

  /** Rejects all requests without a response. */
  fail(reason: string): void {
    this.socket?.destroy();
    this.socket = undefined;
    this.bytes = Buffer.alloc(0);
    for (const { reject } of this.waiting.splice(0)) reject(new Error(reason));
  }

  private open(): Socket {
    const socket = connect(Number(this.url.port), this.url.hostname);
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.take(chunk));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (socket === this.socket) this.fail('the service closed a keep-alive connection');
    });
    return socket;
  }

  private take(chunk: Buffer): void {
    this.bytes = this.bytes.length === 0 ? chunk : Buffer.concat([this.bytes, chunk]);
    try {
      for (;;) {
        const first = this.waiting[0];
        const taken = this.bytes.length > 0 ? takeReply(this.bytes, first?.request.method === 'HEAD') : undefined;
        if (!taken) return;
        if (!first) throw new Error('a response without a request');
        this.bytes = this.bytes.subarray(taken.length);
        if (taken.reply.status < 200) continue;
        this.waiting.shift()?.resolve(taken.reply);
      }
    } catch (error) {
      this.fail((error as Error).message);
    }
  }
}
