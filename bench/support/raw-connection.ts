import { connect } from 'node:net';

const HEAD_END = '\r\n\r\n';

/** A response as its bytes were read. */
export interface RawResponse {
  /** The status line and the headers. */
  head: string;
  body: string;
}

/** A connection that stays open, and sends the bytes of one request after another. */
export class RawConnection {
  private readonly socket;
  private received = '';
  private resolve: (response: RawResponse) => void = () => undefined;
  private reject: (error: Error) => void = () => undefined;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.socket = connect({ host: hostname, port: Number(port), noDelay: true });
    this.socket.setEncoding('latin1');
    this.socket.on('data', (chunk) => this.receive(String(chunk)));
    this.socket.on('error', (error) => this.reject(error));
    this.socket.on('close', () => this.reject(new Error('the server closed the connection')));
  }

  send(request: string): Promise<RawResponse> {
    return new Promise((resolve, reject) => {
      [this.resolve, this.reject] = [resolve, reject];
      this.socket.write(request);
    });
  }

  close(): void {
    this.socket.destroy();
  }

  private receive(chunk: string): void {
    this.received += chunk;
    const end = this.received.indexOf(HEAD_END);
    if (end < 0) return;
    const [head, body] = [this.received.slice(0, end), this.received.slice(end + HEAD_END.length)];
    if (body.length < Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1])) return;
    this.received = '';
    this.resolve({ head, body });
  }
}

/**
 * Without what differs in each response: the status, the headers with the lengths of their values, and that of the
 * body.
 */
export async function shapeOf(url: string, request: string): Promise<string> {
  const connection = new RawConnection(url);
  const { head, body } = await connection.send(request);
  connection.close();
  const [status, ...headers] = head.split('\r\n');
  const lengths = headers.map((line) => line.replace(/: (.*)$/, (_, value) => `: ${value.length} bytes`));
  return [status, ...lengths, `body: ${body.length} bytes`].join('\n');
}
