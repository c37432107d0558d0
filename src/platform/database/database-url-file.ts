import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDatabaseUrl } from '../configuration/database-url.js';
import { WatchedFile } from '../files/watched-file.js';
import type { MetricsRegistry } from '../metrics.js';
import { type MysqlServer, serverOf } from './mysql-server.js';

/** An account may be locked after several failed attempts to connect. */
const MIN_CHECK_INTERVAL_MS = 1_000;

/** The pool whose connections are opened with the content of the file. */
interface FollowingPool {
  connectTo(server: MysqlServer): Promise<void>;
  moveTo(server: MysqlServer): void;
}

/**
 * The file of DATABASE_URL_FILE, which is read again when a connection cannot be opened, at most once per second. If
 * its user, password, host or port has changed and the server accepts a connection with them, each new connection has
 * them. Any other content changes nothing.
 */
export class DatabaseUrlFile {
  private readonly file: WatchedFile;
  server: MysqlServer;
  private pool: FollowingPool | undefined;
  private isChecking = false;

  constructor(
    path: string,
    private readonly url: string,
    metrics: MetricsRegistry,
  ) {
    this.server = serverOf(url);
    const rules = {
      read: async () => (await readFile(path, 'utf8')).trim(),
      current: url,
      use: (changed: string) => this.use(changed),
    };
    this.file = new WatchedFile('DATABASE_URL_FILE', rules, metrics);
  }

  /** @param pool the one whose connections are opened from now on */
  follow(pool: FollowingPool): void {
    this.pool = pool;
  }

  async check(): Promise<void> {
    if (this.isChecking) return;
    this.isChecking = true;
    await Promise.all([this.file.check(), sleep(MIN_CHECK_INTERVAL_MS, undefined, { ref: false })]);
    this.isChecking = false;
  }

  private async use(url: string): Promise<void> {
    if (!isDatabaseUrl(url)) throw new Error('it has no valid URL');
    if (restOf(url) !== restOf(this.url)) throw new Error('only user, password, host and port may change');
    const server = serverOf(url);
    await this.tryConnection(server);
    this.server = server;
    this.pool?.moveTo(server);
  }

  private async tryConnection(server: MysqlServer): Promise<void> {
    try {
      await this.pool?.connectTo(server);
    } catch (error) {
      // the message of the driver may have a part of a wrong URL
      throw new Error(`no connection can be opened with it: ${(error as NodeJS.ErrnoException).code}`);
    }
  }
}

/** What a half-written URL may have lost, and what must not change under a running process: database and options. */
function restOf(url: string): string {
  const { protocol, pathname, search } = new URL(url);
  return protocol + pathname + search;
}
