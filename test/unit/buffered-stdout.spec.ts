import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BufferedStdout } from '../../src/platform/logging/buffered-stdout.js';

const LINE = `${JSON.stringify({ msg: 'ü'.repeat(300) })}\n`;
const LINE_BYTES = Buffer.byteLength(LINE);

let folder: string;
let file: string;
let fileDescriptor: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'output-'));
  file = join(folder, 'log');
  fileDescriptor = openSync(file, 'w');
});
afterEach(() => {
  closeSync(fileDescriptor);
  rmSync(folder, { recursive: true });
});

const written = () => readFileSync(file, 'utf8');
const failOnError = (code: string) => expect.unreachable(code);

describe('the buffered standard output', () => {
  it('writes a single line within 200 ms', async () => {
    const output = new BufferedStdout(fileDescriptor, failOnError);
    output.write(LINE);
    expect(written()).toBe('');
    await sleep(450);
    expect(written()).toBe(LINE);
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
    await sleep(500);
    expect(written() === lines.join('')).toBe(true);
    expect(output.lost).toBe(0);
  });

  it('writes the buffered lines when the process ends, after a write that is in progress', async () => {
    const output = new BufferedStdout(fileDescriptor, failOnError);
    for (let count = 0; count < 200; count++) output.write(LINE);
    output.flush();
    await sleep(50);
    expect(written()).toHaveLength(LINE.length * 200);
  });

  it('buffers 4 MiB while nothing can be written, and counts the lines that it drops beyond that', async () => {
    const reader = spawn('sleep', ['60'], { stdio: ['pipe', 'ignore', 'ignore'] });
    // biome-ignore lint/suspicious/noExplicitAny: Node exposes the file descriptor of a pipe only here
    const pipeDescriptor: number = (reader.stdin as any)._handle.fd;
    const errorCodes: string[] = [];
    const output = new BufferedStdout(pipeDescriptor, (code) => errorCodes.push(code));
    const count = Math.ceil((6 * 1024 * 1024) / LINE_BYTES);
    for (let index = 0; index < count; index++) output.write(LINE);
    await sleep(300);
    const bufferedBytes = (count - output.lost) * LINE_BYTES;
    expect(bufferedBytes).toBeGreaterThan(3.9 * 1024 * 1024);
    expect(bufferedBytes).toBeLessThan(4.2 * 1024 * 1024);
    expect(errorCodes).toEqual(['EAGAIN']); // A full pipe fails a write at once.
    reader.kill();
  });

  it('reports once that writing fails, and loses nothing when writing works again', async () => {
    const reader = spawn('sh', ['-c', `kill -STOP $$; exec cat > ${file}`], { stdio: ['pipe', 'ignore', 'ignore'] });
    // biome-ignore lint/suspicious/noExplicitAny: Node exposes the file descriptor of a pipe only here
    const pipeDescriptor: number = (reader.stdin as any)._handle.fd;
    const errorCodes: string[] = [];
    const output = new BufferedStdout(pipeDescriptor, (code) => errorCodes.push(code));
    for (let round = 1; round <= 2; round++) {
      const count = Math.ceil((1024 * 1024) / LINE_BYTES);
      for (let index = 0; index < count; index++) output.write(LINE);
      await sleep(700);
      expect(errorCodes).toEqual(Array(round).fill('EAGAIN'));
      reader.kill('SIGCONT');
      for (let waited = 0; waited < 5_000 && statSync(file).size < round * count * LINE_BYTES; waited += 50)
        await sleep(50);
      expect(statSync(file).size).toBe(round * count * LINE_BYTES);
      reader.kill('SIGSTOP');
    }
    reader.kill('SIGKILL');
  });

  it('reports the error code of the operating system', async () => {
    const full = openSync('/dev/full', 'w');
    const errorCodes: string[] = [];
    new BufferedStdout(full, (code) => errorCodes.push(code)).write(LINE);
    await sleep(700);
    expect(errorCodes).toEqual(['ENOSPC']);
    closeSync(full);
  });
});
