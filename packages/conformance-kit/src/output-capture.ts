import fs from 'node:fs';
import type { Log } from 'customer-authorization-service/testing-host';
import { pino } from 'pino';
import { SharedPatch } from './shared-patch.js';

const CONSOLE_METHODS = ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir'] as const;

/** The captures that are under way. */
const captures = new Set<OutputCapture>();
const patches = [
  ...CONSOLE_METHODS.map((method) => recording(console, method)),
  ...[process.stdout, process.stderr].map((stream) => recording(stream, 'write')),
  ...['write', 'writeSync'].map((method) => recording(fs, method, ([descriptor]) => isStandardOutput(descriptor))),
];

/**
 * Captures output of the process: always the service's log at its lowest level, and during a test also output by
 * `console`, the standard streams and their file descriptors.
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

  /** The lines of the log about one request. */
  about(requestId: string): string[] {
    return this.lines.filter((line) => line.includes(`"${requestId}"`));
  }

  /** Does work, and captures all output meanwhile. */
  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    captures.add(this);
    const releases = patches.map((patch) => patch.acquire());
    try {
      return await work();
    } finally {
      captures.delete(this);
      for (const release of releases) release();
    }
  }
}

/**
 * Records the arguments of a method, and calls the method, so that a developer still sees the output of `console.log`.
 */
function recording(
  target: object,
  method: string,
  isOutput: (parameters: unknown[]) => boolean = () => true,
): SharedPatch {
  return new SharedPatch(target, method, (original) => (...output: unknown[]) => {
    if (!isOutput(output)) return Reflect.apply(original, target, output);
    const line = output.map((each) => (typeof each === 'string' ? each : asText(each))).join(' ');
    for (const { lines } of captures) lines.push(line);
    return Reflect.apply(original, target, output);
  });
}

/** A logger may write to the file descriptor without the stream. */
const isStandardOutput = (descriptor: unknown): boolean => descriptor === 1 || descriptor === 2;

function asText(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  if (value instanceof Error) return `${value.stack}`;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
