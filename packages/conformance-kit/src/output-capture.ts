import { format } from 'node:util';
import type { Log } from '@customer-authorization/service/testing-host';
import { pino } from 'pino';
import { type Method, replaceMethod, thenRestore } from './replace-method.js';

const CONSOLE_METHODS = ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir'] as const;

/** The methods through which code of a process writes its output. */
const WRITERS: [target: object, method: string][] = [
  ...CONSOLE_METHODS.map((method): [object, string] => [console, method]),
  [process.stdout, 'write'],
  [process.stderr, 'write'],
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

  during<Result>(work: () => Promise<Result>): Promise<Result> {
    const recording = (original: Method) => this.recording(original);
    return thenRestore(
      WRITERS.map(([target, method]) => replaceMethod(target, method, recording)),
      work,
    );
  }

  /** Records what a method writes, and calls the method, so that a developer still sees the output of `console.log`. */
  private recording(original: Method): Method {
    return (...output) => {
      const texts = output.map((part) => (part instanceof Uint8Array ? Buffer.from(part).toString() : part));
      this.lines.push(format(...texts));
      return original(...output);
    };
  }
}
