import { write, writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';

const BUFFER_BYTES = 64 * 1024;
/** A buffer with this many bytes is written without waiting for the interval. */
const WRITE_THRESHOLD_BYTES = BUFFER_BYTES / 2;
/** Full buffers that are retained while they cannot be written: 4 MiB. */
const MAX_RETAINED_BUFFERS = 64;
/** The maximum time until a line is written, also if no other line follows. */
const WRITE_INTERVAL_MS = 200;
/** A write that takes longer counts as one that never ends. */
const WRITE_TIMEOUT_MS = 1_000;
/** A UTF-16 code unit of a line becomes at most this many bytes of UTF-8. */
const MAX_BYTES_PER_CODE_UNIT = 3;

/**
 * Buffers lines and writes them in the background, so that no request waits for a full disk or for a reader that hangs.
 *
 * It is used in place of sonic-boom, pino's own destination, because `flushSync` of sonic-boom 4.2.1 never returns while
 * the disk is full or the reader is gone: the process could not end.
 */
export class BufferedStdout implements DestinationStream {
  /** Lines that were discarded because too many were retained. */
  lost = 0;
  private filling: Buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  /** A written buffer, which is filled again: new buffers cost the garbage collector time. */
  private spare: Buffer | undefined;
  private filledBytes = 0;
  private readonly waiting: Buffer[] = [];
  /** Whether a write has failed since everything was written. */
  private failing = false;
  /** When the current write began, by performance.now(). */
  private writingSince: number | undefined;

  /**
   * @param onError called with the system's error code when writing begins to fail. The write is repeated at each
   * interval.
   */
  constructor(
    private readonly fileDescriptor: number,
    private readonly onError: (code: string) => void,
  ) {
    setInterval(() => this.writeNext(), WRITE_INTERVAL_MS).unref();
  }

  write(line: string): void {
    const maxBytes = line.length * MAX_BYTES_PER_CODE_UNIT;
    if (maxBytes > BUFFER_BYTES - this.filledBytes) this.queueFilled();
    if (this.waiting.length >= MAX_RETAINED_BUFFERS) this.lost++;
    else if (maxBytes > BUFFER_BYTES) this.waiting.push(Buffer.from(line));
    else this.filledBytes += this.filling.write(line, this.filledBytes);
    if (this.filledBytes >= WRITE_THRESHOLD_BYTES && this.writingSince === undefined) this.writeNext();
  }

  /** Writes all retained lines synchronously, at the end of the process. Does not wait for a reader that hangs. */
  flush(): void {
    if (this.writingSince !== undefined && performance.now() - this.writingSince > WRITE_TIMEOUT_MS) return;
    this.queueFilled();
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) {
      const bytes = writeSync(this.fileDescriptor, next);
      if (bytes < next.length) this.waiting.unshift(next.subarray(bytes));
    }
  }

  private writeNext(): void {
    if (this.writingSince !== undefined) return;
    if (this.waiting.length === 0) this.queueFilled();
    const next = this.waiting.shift();
    if (!next) return;
    this.writingSince = performance.now();
    write(this.fileDescriptor, next, (error, bytes = 0) => {
      this.writingSince = undefined;
      if (bytes < next.length) this.waiting.unshift(next.subarray(bytes));
      else if (next.buffer.byteLength === BUFFER_BYTES) this.spare = Buffer.from(next.buffer as ArrayBuffer);
      if (error && !this.failing) this.onError(error.code ?? error.name);
      if (error)
        this.failing = true; // the next interval repeats the write
      else if (this.waiting.length > 0) this.writeNext();
      else this.failing = false;
    });
  }

  /** Puts the buffer that is being filled at the end of those that wait. */
  private queueFilled(): void {
    if (this.filledBytes === 0 || this.waiting.length >= MAX_RETAINED_BUFFERS) return;
    this.waiting.push(this.filling.subarray(0, this.filledBytes));
    this.filling = this.spare ?? Buffer.allocUnsafe(BUFFER_BYTES);
    this.spare = undefined;
    this.filledBytes = 0;
  }
}
