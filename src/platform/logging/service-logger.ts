import type { LoggerService } from '@nestjs/common';
import type { Logger } from 'pino';

/** NestJS's messages about its own start, which do not help an operator. `runService` reports a start that fails. */
const FRAMEWORK = new Set([
  'ExceptionHandler',
  'TypeOrmModule',
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
]);

/** Writes the messages of NestJS's `Logger`, from the framework and from the service, to the service's log. */
export class ServiceLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, ...rest: unknown[]): void {
    this.write('info', message, rest);
  }

  error(message: unknown, ...rest: unknown[]): void {
    this.write('error', message, rest);
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.write('warn', message, rest);
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest);
  }

  verbose(message: unknown, ...rest: unknown[]): void {
    this.write('trace', message, rest);
  }

  /** NestJS passes the context of a message, such as a class name, as the last parameter. */
  private write(level: 'error' | 'warn' | 'info' | 'debug' | 'trace', message: unknown, rest: unknown[]): void {
    const context = rest.at(-1);
    if (!FRAMEWORK.has(String(context))) this.logger[level]({ context }, String(message));
  }
}
