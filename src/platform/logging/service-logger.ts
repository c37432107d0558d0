import { ConsoleLogger, type LogLevel } from '@nestjs/common';
import type { Configuration } from '../configuration/configuration.js';

const LEVELS: LogLevel[] = ['fatal', 'error', 'warn', 'log', 'debug', 'verbose'];
/** Nest's account of its own start: of no use to whoever runs the service. */
const FRAMEWORK = new Set([
  'ExceptionHandler',
  'TypeOrmModule',
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
]);

/** Lines on stderr, as JSON in production; stdout is for what a command was asked for. */
export class ServiceLogger extends ConsoleLogger {
  constructor({ LOG_LEVEL, NODE_ENV }: Configuration) {
    super({ json: NODE_ENV === 'production', logLevels: LEVELS.slice(0, LEVELS.indexOf(LOG_LEVEL) + 1) });
  }

  override log(message: unknown, ...rest: unknown[]): void {
    if (!FRAMEWORK.has(String(rest.at(-1)))) super.log(message, ...rest);
  }

  /** A start that fails is told once, by whoever started it. */
  override error(message: unknown, ...rest: unknown[]): void {
    if (!FRAMEWORK.has(String(rest.at(-1)))) super.error(message, ...rest);
  }

  protected override printMessages(messages: unknown[], context?: string, level?: LogLevel): void {
    super.printMessages(messages, context, level, 'stderr');
  }

  protected override getTimestamp(): string {
    return new Date().toISOString();
  }
}
