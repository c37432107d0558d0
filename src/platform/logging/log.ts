import { type DestinationStream, type Logger, pino } from 'pino';
import type { Configuration } from '../configuration/configuration.js';
import { loadWhenUsed } from '../load-when-used.js';
import { BufferedStdout } from './buffered-stdout.js';

/** The log of a process: JSON lines in production, readable lines in development. */
export interface Log {
  logger: Logger;
  /** Lines that were discarded, because the disk was full or the reader too slow for too long. */
  readonly lost: number;
  /** Writes the lines that are still buffered, at the end of a process. */
  flush(): void;
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
    flush: () => ignoringErrors(() => stdout.flush()),
  };
}

/** A command's log on stderr, because standard output (stdout) contains only the command's result (protocol §9.3). */
export function commandLog(configuration: Configuration): Log {
  if (configuration.NODE_ENV !== 'production') return readableLog(configuration, 2);
  return {
    logger: loggerOn(configuration, pino.destination({ dest: 2, sync: true })),
    lost: 0,
    flush: () => undefined,
  };
}

function readableLog(configuration: Configuration, fileDescriptor: 1 | 2): Log {
  const { isTTY: colorize = false } = fileDescriptor === 1 ? process.stdout : process.stderr;
  const { build: pretty } = loadWhenUsed<typeof import('pino-pretty')>('pino-pretty');
  const stream = pretty({ destination: fileDescriptor, sync: true, singleLine: true, ignore: 'surface', colorize });
  return { logger: loggerOn(configuration, stream), lost: 0, flush: () => undefined };
}

function loggerOn({ LOG_LEVEL }: Configuration, stream: DestinationStream): Logger {
  const formatters = { level: (level: string) => ({ level }) };
  return pino({ level: LOG_LEVEL, base: null, timestamp: timestamps(), formatters }, stream);
}

/**
 * ISO 8601 in UTC. Lines of one millisecond share the text, because formatting it costs as much as the rest of a line.
 * The times come from `Date.now` instead of `Clock`, because the log exists before the application with its providers.
 */
function timestamps(): () => string {
  let last = 0;
  let text = '';
  return () => {
    const now = Date.now();
    if (now !== last) text = `,"time":"${new Date(now).toISOString()}"`;
    last = now;
    return text;
  };
}

/** A log that cannot be written must not prevent the end of a process. */
function ignoringErrors(act: () => void): void {
  try {
    act();
  } catch {
    // for example because the reader has closed the pipe
  }
}
