import type { LoggerService } from '@nestjs/common';
import type { Logger } from 'pino';

/** Nest's account of its own start: of no use to whoever runs the service. A start that fails is told once, by `main`. */
const FRAMEWORK = new Set([
  'ExceptionHandler',
  'TypeOrmModule',
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
]);

/** What Nest's `Logger` is told, by us and by itself, as lines of our log. */
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

  /** Nest puts the name of who speaks last. */
  private write(level: 'error' | 'warn' | 'info' | 'debug' | 'trace', message: unknown, rest: unknown[]): void {
    const context = rest.at(-1);
    if (!FRAMEWORK.has(String(context))) this.logger[level]({ context }, String(message));
  }
}
