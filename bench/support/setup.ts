import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import mysql from 'mysql2/promise';
import { buildIfStale } from '../../scripts/build.js';
import { type MariadbServer, startMariadb } from '../../scripts/mariadb.js';
import { describeRun, markdownTable, type Table } from './figures.js';
import { SERVICE, type Server, startServer } from './server.js';
import { REGISTRY } from './site.js';

export interface Setup {
  database: MariadbServer;
  connection: mysql.Connection;
  /** Of the servers. */
  environment: ReturnType<typeof environmentOf>;
  start(program: string[], more?: NodeJS.ProcessEnv): Promise<Server>;
}

/**
 * Runs a benchmark with the built service and a private durable MariaDB that has its tables, and removes both. Prints
 * the results as Markdown, for docs/performance.md.
 */
export async function benchmark(
  command: string,
  bufferPool: string, // InnoDB's
  run: (setup: Setup) => Promise<Table[]>,
): Promise<void> {
  buildIfStale();
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  const database = await startMariadb({ durable: true, bufferPool });
  const servers: Server[] = [];
  try {
    const environment = environmentOf(folder, await database.createDatabase('bench'));
    const start = async (program: string[], more: NodeJS.ProcessEnv = {}) => {
      const server = await startServer(program, { ...environment, ...more }, join(folder, `${servers.length}.log`));
      servers.push(server);
      return server;
    };
    await (await start(SERVICE)).stop(); // creates the tables
    const connection = await mysql.createConnection(database.url('bench'));
    const description = await describeRun(command, connection);
    const tables = await run({ database, connection, environment, start });
    connection.destroy();
    console.log([description, ...tables.map(markdownTable)].join('\n\n'));
  } finally {
    for (const server of servers) void server.stop('SIGKILL');
    await database.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The default production configuration, but with rate limits that no benchmark reaches. */
function environmentOf(folder: string, databaseUrl: string) {
  const [keys, registry] = [join(folder, 'keys.json'), join(folder, 'registry.yaml')];
  writeFileSync(keys, execFileSync(process.execPath, ['dist/cli.js', 'keys', 'generate']));
  writeFileSync(registry, REGISTRY);
  return {
    PATH: process.env.PATH,
    NODE_ENV: 'production',
    DATABASE_URL: databaseUrl,
    MIGRATE_ON_START: 'true',
    SIGNING_KEYS_FILE: keys,
    REGISTRY_FILE: registry,
    AUTH_URL: 'http://localhost',
    HOST: '127.0.0.1',
    RATE_LIMIT: ['identities', 'tokens', 'transfers', 'revocations'].map((limit) => `${limit}=999999999/60`).join(),
  };
}
