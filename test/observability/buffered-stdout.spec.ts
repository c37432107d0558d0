import { type ChildProcess, spawn } from 'node:child_process';
import fs, { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BufferedStdout } from '../../src/platform/logging/buffered-stdout.js';

const LINE = `${JSON.stringify({ msg: 'ü'.repeat(300) })}\n`;
const LINE_BYTES = Buffer.byteLength(LINE);
const WRITE_INTERVAL_MS = 200;

const write = vi.spyOn(fs, 'write');
syncBuiltinESMExports(); // the named import of the service then has the spy, too
afterAll(() => {
  write.mockRestore();
  syncBuiltinESMExports();
});

let folder: string;
let file: string;
let fileDescriptor: number;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval'] }); // after the test, no writer uses a closed descriptor
  folder = mkdtempSync(join(tmpdir(), 'output-'));
  file = join(folder, 'log');
  fileDescriptor = openSync(file, 'w');
});
afterEach(() => {
  vi.useRealTimers();
  write.mockClear();
  closeSync(fileDescriptor);
  rmSync(folder, { recursive: true });
});

const written = () => readFileSync(file, 'utf8');
const failOnError = (code: string) => expect.unreachable(code);
const writesTo = (descriptor: number) => write.mock.calls.filter(([used]) => used === descriptor).length;
const skipInterval = () => void vi.advanceTimersByTime(WRITE_INTERVAL_MS);

/** Skips intervals until the check has its expected value. */
function pollAtIntervals<Value>(check: () => Value) {
  return expect.poll(() => {
    skipInterval();
    return check();
  });
}

/** Waits until two more writes to a descriptor have ended. The next write begins only after the end of one. */
async function twoMoreWrites(descriptor: number): Promise<void> {
  const before = writesTo(descriptor);
  await pollAtIntervals(() => writesTo(descriptor)).toBeGreaterThan(before + 2);
}

function pipeTo(reader: ChildProcess): number {
  // biome-ignore lint/suspicious/noExplicitAny: Node exposes the file descriptor of a pipe only here
  return (reader.stdin as any)._handle.fd;
}

/** Waits until SIGSTOP has stopped a process: only then a SIGCONT continues it. */
async function stopped({ pid }: ChildProcess): Promise<void> {
  const state = () => /\) (\w) /.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1];
  await expect.poll(state).toBe('T');
}

describe('the buffered standard output', () => {
  it('writes a single line within 200 ms', async () => {
    const output = new BufferedStdout(fileDescriptor, failOnError);
    output.write(LINE);
    expect(written()).toBe('');
    skipInterval();
    expect(writesTo(fileDescriptor)).toBe(1);
    await expect.poll(written).toBe(LINE);
  });

  it('writes every line whole and in order, including lines that are larger than the buffer', async () => {
    const output = new BufferedStdout(fileDescriptor, failOnError);
    const lines = Array.from({ length: 2_000 }, (_, index) =>
      index % 100 === 7 ? `${index} ${'x'.repeat(100_000)}\n` : `${index} ${LINE}`,
    );
    for (const [index, line] of lines.entries()) {
      output.write(line);
      if (index % 50 === 0) await sleep(1);
    }
    await pollAtIntervals(() => written() === lines.join('')).toBe(true);
    expect(output.lost).toBe(0);
  });

  it('writes the buffered lines when the process ends, after a write that is in progress', async () => {
    const output = new BufferedStdout(fileDescriptor, failOnError);
    for (let count = 0; count < 200; count++) output.write(LINE);
    output.flush();
    await expect.poll(() => written().length).toBe(LINE.length * 200);
  });

  it('buffers 4 MiB while nothing can be written, and counts the lines that it drops beyond that', async () => {
    const reader = spawn('sleep', ['120'], { stdio: ['pipe', 'ignore', 'ignore'] });
    const errorCodes: string[] = [];
    const output = new BufferedStdout(pipeTo(reader), (code) => errorCodes.push(code));
    const count = Math.ceil((6 * 1024 * 1024) / LINE_BYTES);
    for (let index = 0; index < count; index++) output.write(LINE);
    await twoMoreWrites(pipeTo(reader));
    const bufferedBytes = (count - output.lost) * LINE_BYTES;
    expect(bufferedBytes).toBeGreaterThan(3.9 * 1024 * 1024);
    expect(bufferedBytes).toBeLessThan(4.2 * 1024 * 1024);
    expect(errorCodes).toEqual(['EAGAIN']); // A full pipe fails a write at once.
    reader.kill();
  });

  it('reports once that writing fails, and loses nothing when writing works again', async () => {
    const reader = spawn('sh', ['-c', `kill -STOP $$; exec cat > ${file}`], { stdio: ['pipe', 'ignore', 'ignore'] });
    const errorCodes: string[] = [];
    const output = new BufferedStdout(pipeTo(reader), (code) => errorCodes.push(code));
    for (let round = 1; round <= 2; round++) {
      await stopped(reader);
      const count = Math.ceil((1024 * 1024) / LINE_BYTES);
      for (let index = 0; index < count; index++) output.write(LINE);
      await pollAtIntervals(() => errorCodes.length).toBe(round);
      await twoMoreWrites(pipeTo(reader));
      expect(errorCodes).toEqual(Array(round).fill('EAGAIN'));
      reader.kill('SIGCONT');
      await pollAtIntervals(() => statSync(file).size).toBe(round * count * LINE_BYTES);
      reader.kill('SIGSTOP');
    }
    expect(output.lost).toBe(0);
    reader.kill('SIGKILL');
  });
});
