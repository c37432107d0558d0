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
export function serviceLogger(logger: Logger): LoggerService {
  const writeAt =
    (level: 'error' | 'warn' | 'info' | 'debug' | 'trace') =>
    (message: unknown, ...rest: unknown[]) => {
      const context = rest.at(-1); // such as a class name
      if (!FRAMEWORK.has(String(context))) logger[level]({ context }, String(message));
    };
  return {
    log: writeAt('info'),
    error: writeAt('error'),
    warn: writeAt('warn'),
    debug: writeAt('debug'),
    verbose: writeAt('trace'),
  };
}
