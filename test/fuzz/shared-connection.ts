import { connect, type Socket } from 'node:net';
import { bytesOf, type FuzzRequest } from './fuzz-request.js';
import { type Reply, takeReply } from './reply.js';

interface Waiting {
  request: FuzzRequest;
  /** How often it was looked at while it was the oldest. */
  looks: number;
  resolve: (reply: Reply) => void;
  reject: (error: Error) => void;
}

/** A connection that is kept alive, on which requests follow each other without waiting for the answers. */
export class SharedConnection {
  private readonly waiting: Waiting[] = [];
  private socket: Socket | undefined;
  private bytes: Buffer = Buffer.alloc(0);

  constructor(private readonly url: URL) {}

  ask(request: FuzzRequest): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ request, looks: 0, resolve, reject });
      this.socket ??= this.open();
      this.socket.write(bytesOf(request));
    });
  }

  /**
   * Looks whether the oldest request has waited for so many looks: a pause of our own process is one look, and no pause of
   * the service.
   */
  isSilentFor(looks: number): boolean {
    const [oldest] = this.waiting;
    return oldest !== undefined && ++oldest.looks > looks;
  }

  /** Gives up on whatever has no answer yet. */
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
      if (socket === this.socket) this.fail('the service closed a connection that it should have kept');
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
        if (!first) throw new Error('an answer that nobody has asked for');
        this.bytes = this.bytes.subarray(taken.length);
        if (taken.reply.status < 200) continue;
        this.waiting.shift()?.resolve(taken.reply);
      }
    } catch (error) {
      this.fail((error as Error).message);
    }
  }
}
