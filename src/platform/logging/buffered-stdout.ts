import { write, writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';

const WRITE_THRESHOLD_BYTES = 32 * 1024;
const MAX_RETAINED_BYTES = 4 * 1024 * 1024;
const WRITE_INTERVAL_MS = 200;
/** A write that takes longer counts as one that never ends. */
const WRITE_TIMEOUT_MS = 1_000;

/**
 * No request waits for a full disk or for a reader that hangs. pino's own destination, sonic-boom 4.2.1, never returns
 * from `flushSync` while the disk is full or the reader is gone, so the process could not end.
 */
export class BufferedStdout implements DestinationStream {
  lost = 0;
  private lines = '';
  private linesBytes = 0;
  /** What is being written, or was not written completely. */
  private unwritten = Buffer.alloc(0);
  /** Whether a write has failed since everything was written. */
  private failing = false;
  /** When the current write began, by performance.now(). */
  private writingSince: number | undefined;

  /** @param onError called with the system's error code when writing begins to fail */
  constructor(
    private readonly fileDescriptor: number,
    private readonly onError: (code: string) => void,
  ) {
    setInterval(() => this.writeNext(), WRITE_INTERVAL_MS).unref();
  }

  write(line: string): void {
    if (this.linesBytes + this.unwritten.length >= MAX_RETAINED_BYTES) {
      this.lost++;
      return;
    }
    this.lines += line;
    this.linesBytes += Buffer.byteLength(line);
    if (this.linesBytes >= WRITE_THRESHOLD_BYTES && this.unwritten.length === 0) this.writeNext();
  }

  /** Writes all retained lines synchronously, at the end of the process. Does not wait for a reader that hangs. */
  flush(): void {
    if (this.writingSince !== undefined && performance.now() - this.writingSince > WRITE_TIMEOUT_MS) return;
    if (this.writingSince !== undefined) this.unwritten = Buffer.alloc(0); // the write in progress writes it
    for (this.takeLines(); this.unwritten.length > 0; this.takeLines())
      this.unwritten = this.unwritten.subarray(writeSync(this.fileDescriptor, this.unwritten));
  }

  private writeNext(): void {
    if (this.writingSince !== undefined) return;
    this.takeLines();
    const next = this.unwritten;
    if (next.length === 0) return;
    this.writingSince = performance.now();
    write(this.fileDescriptor, next, (error, bytes = 0) => {
      this.writingSince = undefined;
      this.unwritten = next.subarray(bytes);
      if (error && !this.failing) this.onError(error.code ?? error.name);
      if (error)
        this.failing = true; // the next interval repeats the write
      else if (this.unwritten.length > 0 || this.linesBytes >= WRITE_THRESHOLD_BYTES) this.writeNext();
      else this.failing = false;
    });
  }

  private takeLines(): void {
    if (this.unwritten.length > 0) return;
    this.unwritten = Buffer.from(this.lines);
    this.lines = '';
    this.linesBytes = 0;
  }
}
