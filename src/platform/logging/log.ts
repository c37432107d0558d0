import type { LoggerService } from '@nestjs/common';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Configuration } from '../configuration/configuration.js';
import { loadWhenUsed } from '../load-when-used.js';
import { BufferedStdout } from './buffered-stdout.js';

export interface Log {
  logger: Logger;
  /** Lines that were discarded, because the disk was full or the reader too slow for too long. */
  readonly lost?: number;
  flush?(): void;
}

/** The service's log on stdout. A `kill -9` loses at most the lines of the last 200 ms. */
export function serviceLog(configuration: Configuration): Log {
  if (configuration.NODE_ENV !== 'production') return readableLog(configuration, 1);
  const stdout = new BufferedStdout(1, (code) =>
    process.stderr.write(
      `stdout: cannot write the log (${code}); the service continues and buffers up to 4 MiB of log lines\n`,
    ),
  );
  return {
    logger: loggerOn(configuration, stdout),
    get lost() {
      return stdout.lost;
    },
    flush: () => {
      try {
        stdout.flush();
      } catch {
        // a log that cannot be written, for example to a closed pipe, must not prevent the end of the process
      }
    },
  };
}

/** A command's log on stderr, because standard output (stdout) contains only the command's result (protocol §9.3). */
export function commandLog(configuration: Configuration): Log {
  if (configuration.NODE_ENV !== 'production') return readableLog(configuration, 2);
  return { logger: loggerOn(configuration, pino.destination({ dest: 2, sync: true })) };
}

function readableLog(configuration: Configuration, fileDescriptor: 1 | 2): Log {
  const { isTTY: colorize = false } = fileDescriptor === 1 ? process.stdout : process.stderr;
  const { build: pretty } = loadWhenUsed<typeof import('pino-pretty')>('pino-pretty');
  const stream = pretty({ destination: fileDescriptor, sync: true, singleLine: true, ignore: 'surface', colorize });
  return { logger: loggerOn(configuration, stream) };
}

function loggerOn({ LOG_LEVEL }: Configuration, stream: DestinationStream): Logger {
  const formatters = { level: (level: string) => ({ level }) };
  return pino({ level: LOG_LEVEL, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters }, stream);
}

/** Their messages quote the account and the limit that it has reached, such as 'max_user_connections'. */
const LIMIT_ERRNOS: unknown[] = [1203, 1226];

/** Without the values of rows, which a database quotes. */
function messageOf(error: Error): string {
  if (!('errno' in error || 'driverError' in error)) return error.message;
  const isLimit = 'errno' in error && LIMIT_ERRNOS.includes(error.errno);
  return error.message.replace(isLimit ? /'(?!max_)[^']*'/g : /'.*'|".*"|`.*`/s, '…');
}

/** More causes than an error has, unless it is its own cause. */
const MAX_CAUSES = 10;

/** The messages of an error and of its causes, without the values that some messages quote. */
export function traceOf(cause: unknown, stack: boolean, maxCauses = MAX_CAUSES): string {
  if (!(cause instanceof Error)) return typeof cause;
  const frames = stack ? (String(cause.stack).match(/^ +at .*$/gm) ?? []) : [];
  // the message of a parser quotes the text that it could not parse
  const summary = cause instanceof SyntaxError ? cause.name : `${cause.name}: ${messageOf(cause)}`;
  const text = [summary, ...frames].join('\n');
  if (cause.cause === undefined || maxCauses === 0) return text;
  return `${text}\ncaused by ${traceOf(cause.cause, stack, maxCauses - 1)}`;
}

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
