import { pino } from 'pino';
import type { Log } from '../platform/logging/log.js';
import { SharedPatch } from './shared-patch.js';

const CONSOLE_METHODS = ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir'] as const;

/** The captures that are not yet released. */
const captures = new Set<OutputCapture>();
const patches = [
  ...CONSOLE_METHODS.map((method) => recording(console, method)),
  ...[process.stdout, process.stderr].map((stream) => recording(stream, 'write')),
];

/**
 * Captures all output of the process: the service's log at its lowest level, and output by `console` or the streams.
 */
export class OutputCapture {
  readonly lines: string[] = [];
  readonly log: Log;
  private readonly releases: (() => void)[];

  constructor() {
    const stream = { write: (line: string) => void this.lines.push(line) };
    const formatters = { level: (level: string) => ({ level }) };
    this.log = {
      logger: pino({ level: 'trace', base: null, formatters }, stream),
      lost: 0,
      flush: () => undefined,
    };
    captures.add(this);
    this.releases = patches.map((patch) => patch.acquire());
  }

  get text(): string {
    return this.lines.join('\n');
  }

  /** The lines of the log about one request. */
  about(requestId: string): string[] {
    return this.lines.filter((line) => line.includes(`"${requestId}"`));
  }

  release(): void {
    captures.delete(this);
    for (const release of this.releases) release();
  }
}

/**
 * Records the arguments of a method, and calls the method, so that a developer still sees the output of `console.log`.
 */
function recording(target: object, method: string): SharedPatch {
  return new SharedPatch(target, method, (original) => (...output: unknown[]) => {
    const line = output.map((each) => (typeof each === 'string' ? each : asText(each))).join(' ');
    for (const { lines } of captures) lines.push(line);
    return Reflect.apply(original, target, output);
  });
}

function asText(value: unknown): string {
  if (value instanceof Error) return `${value.stack}`;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
