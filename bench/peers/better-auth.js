/** better-auth: anonymous sign-in. It stores its users and sessions in the same MariaDB. */
import { createServer } from 'node:http';
import { betterAuth } from 'better-auth';
import { getMigrations } from 'better-auth/db/migration';
import { toNodeHandler } from 'better-auth/node';
import { anonymous } from 'better-auth/plugins';
import { createPool } from 'mysql2/promise';

const { PORT = '0', DATABASE_URL = '' } = process.env;
const options = {
  baseURL: `http://localhost:${PORT}`,
  secret: 'of-a-bench-and-long-enough-for-its-rule',
  database: createPool({ uri: DATABASE_URL.replace(/^mariadb:/, 'mysql:'), connectionLimit: 10, timezone: 'Z' }),
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  logger: { level: 'error' },
  trustedOrigins: ['http://localhost'],
  plugins: [anonymous()],
};
const { runMigrations } = await getMigrations(options);
await runMigrations();
createServer(toNodeHandler(betterAuth(options))).listen(Number(PORT), '127.0.0.1');
