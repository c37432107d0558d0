import { pino } from 'pino';
import type { Log } from '../platform/logging/log.js';

const METHODS = ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir'] as const;

/** Everything that a process tells: the service's log at its most talkative, and what goes around it by `console`. */
export class OutputCapture {
  readonly lines: string[] = [];
  readonly log: Log;
  private readonly restore: (() => void)[] = [];

  constructor() {
    const stream = { write: (line: string) => void this.lines.push(line) };
    const formatters = { level: (level: string) => ({ level }) };
    this.log = {
      logger: pino({ level: 'trace', base: null, formatters }, stream),
      lost: 0,
      flush: () => undefined,
    };
    for (const method of METHODS) this.listen(console, method);
    for (const stream of [process.stdout, process.stderr]) this.listen(stream, 'write');
  }

  get text(): string {
    return this.lines.join('\n');
  }

  /** What the log says of one request. */
  about(requestId: string): string[] {
    return this.lines.filter((line) => line.includes(`"${requestId}"`));
  }

  release(): void {
    for (const act of this.restore) act();
  }

  /** Goes on telling, so that whoever looks for a fault by `console.log` sees it. */
  private listen(target: object, method: string): void {
    const tell = Reflect.get(target, method) as (...told: unknown[]) => unknown;
    Reflect.set(target, method, (...told: unknown[]) => {
      this.lines.push(told.map((each) => (typeof each === 'string' ? each : asText(each))).join(' '));
      return tell.apply(target, told);
    });
    this.restore.push(() => Reflect.set(target, method, tell));
  }
}

function asText(value: unknown): string {
  if (value instanceof Error) return `${value.stack}`;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
