import { format } from 'node:util';
import type { Log } from '@customer-authorization/service/testing-host';
import { pino } from 'pino';
import { SharedPatch, thenRestore } from './shared-patch.js';

const CONSOLE_METHODS = ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir'] as const;

const captures = new Set<OutputCapture>();
const patches = [
  ...CONSOLE_METHODS.map((method) => recording(console, method)),
  ...[process.stdout, process.stderr].map((stream) => recording(stream, 'write')),
];

/**
 * Captures output of the process: always the service's log at its lowest level, and during a test also output by
 * `console` and the standard streams.
 */
export class OutputCapture {
  readonly lines: string[] = [];
  readonly log: Log;

  constructor() {
    const stream = { write: (line: string) => void this.lines.push(line) };
    const formatters = { level: (level: string) => ({ level }) };
    this.log = { logger: pino({ level: 'trace', base: null, formatters }, stream) };
  }

  get text(): string {
    return this.lines.join('\n');
  }

  about(requestId: string): string[] {
    return this.lines.filter((line) => line.includes(`"${requestId}"`));
  }

  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    captures.add(this);
    return thenRestore([...patches.map((patch) => patch.acquire()), () => captures.delete(this)], work);
  }
}

/**
 * Records the arguments of a method, and calls the method, so that a developer still sees the output of `console.log`.
 */
function recording(target: object, method: string): SharedPatch {
  return new SharedPatch(target, method, (original) => (...output) => {
    const texts = output.map((part) => (part instanceof Uint8Array ? Buffer.from(part).toString() : part));
    for (const { lines } of captures) lines.push(format(...texts));
    return original(...output);
  });
}
