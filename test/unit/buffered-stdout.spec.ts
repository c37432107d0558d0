import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BufferedStdout } from '../../src/platform/logging/buffered-stdout.js';

const LINE = `${JSON.stringify({ msg: 'ü'.repeat(300) })}\n`;
const BYTES = Buffer.byteLength(LINE);

let folder: string;
let file: string;
let channel: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'output-'));
  file = join(folder, 'log');
  channel = openSync(file, 'w');
});
afterEach(() => {
  closeSync(channel);
  rmSync(folder, { recursive: true });
});

const written = () => readFileSync(file, 'utf8');
const noFault = (code: string) => expect.unreachable(code);

describe('the output that gathers lines', () => {
  it('writes a single line within 200 ms', async () => {
    const output = new BufferedStdout(channel, noFault);
    output.write(LINE);
    expect(written()).toBe('');
    await sleep(450);
    expect(written()).toBe(LINE);
  });

  it('writes every line, whole and in its order, also one that is larger than a buffer', async () => {
    const output = new BufferedStdout(channel, noFault);
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

  it('writes at the end of the process what is still kept, also behind a write that is under way', async () => {
    const output = new BufferedStdout(channel, noFault);
    for (let count = 0; count < 200; count++) output.write(LINE);
    output.flush();
    await sleep(50);
    expect(written()).toHaveLength(LINE.length * 200);
  });

  it('keeps 4 MiB while nothing can be written, counts what is lost beyond, and goes on where it stopped', async () => {
    const reader = spawn('sleep', ['60'], { stdio: ['pipe', 'ignore', 'ignore'] });
    // biome-ignore lint/suspicious/noExplicitAny: node tells the channel of a pipe to nobody else
    const pipe: number = (reader.stdin as any)._handle.fd;
    const faults: string[] = [];
    const output = new BufferedStdout(pipe, (code) => faults.push(code));
    const count = Math.ceil((6 * 1024 * 1024) / BYTES);
    for (let index = 0; index < count; index++) output.write(LINE);
    await sleep(300);
    const kept = (count - output.lost) * BYTES;
    expect(kept).toBeGreaterThan(3.9 * 1024 * 1024);
    expect(kept).toBeLessThan(4.2 * 1024 * 1024);
    expect(faults).toEqual(['EAGAIN']); // this pipe refuses at once what it has no room for
    reader.kill();
  });

  it('tells once that writing fails, and loses nothing when it works again', async () => {
    const reader = spawn('sh', ['-c', `kill -STOP $$; exec cat > ${file}`], { stdio: ['pipe', 'ignore', 'ignore'] });
    // biome-ignore lint/suspicious/noExplicitAny: node tells the channel of a pipe to nobody else
    const pipe: number = (reader.stdin as any)._handle.fd;
    const faults: string[] = [];
    const output = new BufferedStdout(pipe, (code) => faults.push(code));
    for (let trouble = 1; trouble <= 2; trouble++) {
      const count = Math.ceil((1024 * 1024) / BYTES);
      for (let index = 0; index < count; index++) output.write(LINE);
      await sleep(700);
      expect(faults).toEqual(Array(trouble).fill('EAGAIN'));
      reader.kill('SIGCONT');
      for (let waited = 0; waited < 5_000 && statSync(file).size < trouble * count * BYTES; waited += 50)
        await sleep(50);
      expect(statSync(file).size).toBe(trouble * count * BYTES);
      reader.kill('SIGSTOP');
    }
    reader.kill('SIGKILL');
  });

  it("tells the system's word for what is wrong", async () => {
    const full = openSync('/dev/full', 'w');
    const faults: string[] = [];
    new BufferedStdout(full, (code) => faults.push(code)).write(LINE);
    await sleep(700);
    expect(faults).toEqual(['ENOSPC']);
    closeSync(full);
  });
});
