import { write, writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';

/** Bytes of one buffer, and how many of them are worth a write. */
const SIZE = 64 * 1024;
const CHUNK = SIZE / 2;
/** Full buffers that are kept while they cannot be written: 4 MiB. */
const KEPT = 64;
/** Milliseconds until a line is written, also where no more follow. */
const LATEST = 200;
/** Milliseconds after which a write is taken for one that never ends. */
const LONGEST_WRITE = 1_000;
/** Bytes that one UTF-16 unit of a line can become at most. */
const WIDEST = 3;

/**
 * Gathers lines in memory and writes them in the background, so that a full disk or a reader that hangs keeps no request
 * waiting. Lines go straight into a buffer: gathered as strings, as pino's own destination does it, they cost a request
 * 10 µs more (docs/performance.md).
 */
export class GatheredOutput implements DestinationStream {
  /** Lines that nobody will read: what could be kept was full. */
  lost = 0;
  private filling: Buffer = Buffer.allocUnsafe(SIZE);
  /** A buffer that has been written, to be filled again: new ones keep the garbage collector busy. */
  private spare: Buffer | undefined;
  private filled = 0;
  private readonly waiting: Buffer[] = [];
  /** Whether a write has failed since all was written. */
  private failing = false;
  /** When the write that is under way began. */
  private writingSince: number | undefined;

  /** @param onFault told the system's code when writing begins to fail; it is tried again five times a second */
  constructor(
    private readonly channel: number,
    private readonly onFault: (code: string) => void,
  ) {
    setInterval(() => this.writeNext(), LATEST).unref();
  }

  write(line: string): void {
    const widest = line.length * WIDEST;
    if (widest > SIZE - this.filled) this.close();
    if (this.waiting.length >= KEPT) this.lost++;
    else if (widest > SIZE) this.waiting.push(Buffer.from(line));
    else this.filled += this.filling.write(line, this.filled);
    if (this.filled >= CHUNK && this.writingSince === undefined) this.writeNext();
  }

  /** Writes what is still kept, now; for the end of a process. A reader that hangs is not waited for. */
  flush(): void {
    if (this.writingSince !== undefined && performance.now() - this.writingSince > LONGEST_WRITE) return;
    this.close();
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) {
      const bytes = writeSync(this.channel, next);
      if (bytes < next.length) this.waiting.unshift(next.subarray(bytes));
    }
  }

  private writeNext(): void {
    if (this.writingSince !== undefined) return;
    if (this.waiting.length === 0) this.close();
    const next = this.waiting.shift();
    if (!next) return;
    this.writingSince = performance.now();
    write(this.channel, next, (error, bytes = 0) => {
      this.writingSince = undefined;
      if (bytes < next.length) this.waiting.unshift(next.subarray(bytes));
      else if (next.buffer.byteLength === SIZE) this.spare = Buffer.from(next.buffer as ArrayBuffer);
      if (error && !this.failing) this.onFault(error.code ?? error.name);
      if (error)
        this.failing = true; // the next tick tries again
      else if (this.waiting.length > 0) this.writeNext();
      else this.failing = false;
    });
  }

  /** Puts the lines that were gathered behind those that wait. */
  private close(): void {
    if (this.filled === 0 || this.waiting.length >= KEPT) return;
    this.waiting.push(this.filling.subarray(0, this.filled));
    this.filling = this.spare ?? Buffer.allocUnsafe(SIZE);
    this.spare = undefined;
    this.filled = 0;
  }
}
