// @ts-check
/**
 * `npm run bench:growth`: returning and new customers with an empty database, and with millions of customers, codes and
 * revocations in it, which at last a purge works through. 1 and 5 million customers, 10 million expired codes and as many
 * revocations, or as many as GROWTH says: `GROWTH=1,5,10` (millions). Takes a quarter of an hour, and 10 GB of disk.
 */
import { spawn } from 'node:child_process';
import { measure, medians } from './measure.js';
import { routesOf } from './routes.js';
import { SERVICE } from './server.js';
import { ORGANIZATION, seedCustomers } from './site.js';
import { onStage } from './stage.js';

const [SOME = 1, MANY = 5, EXPIRED = 10] = (process.env.GROWTH ?? '1,5,10').split(',').map(Number);
const MILLION = 1_000_000;
/** As good as none. */
const FEW = 20_000;
const SECONDS = 5;
const ROUNDS = 3;

await onStage('2G', async ({ connection, pid, environment, start }) => {
  /** @type {Record<string, object>} */
  const rows = {};
  const look = async (/** @type {string} */ size, /** @type {number} */ customers) => {
    const routes = (await routesOf(environment.SIGNING_KEYS_FILE, customers)).slice(0, 2);
    const service = await start(SERVICE);
    for (const { name, requests } of routes) {
      const once = (/** @type {number} */ seconds) =>
        measure(service, { pid, connection }, { port: service.port, requests: requests(), seconds });
      await once(2);
      const rounds = [];
      while (rounds.length < ROUNDS) rounds.push(await once(SECONDS));
      const { rate, cpu, databaseCpu, p50, p99, written } = medians(rounds);
      rows[`${name}, ${size}`] = {
        'requests/s': Math.round(rate),
        'CPU µs': Math.round(cpu),
        'database µs': Math.round(databaseCpu),
        'p50 ms': p50,
        'p99 ms': p99,
        'bytes written': Math.round(written),
      };
    }
    await service.stop();
    console.table(rows);
  };
  await seedCustomers(connection, 1, FEW);
  await look('20,000 customers', FEW);
  await seedCustomers(connection, FEW + 1, SOME * MILLION);
  await look(`${SOME} million`, SOME * MILLION);
  await seedCustomers(connection, SOME * MILLION + 1, MANY * MILLION);
  await look(`${MANY} million`, MANY * MILLION);
  await seedExpired(EXPIRED * MILLION);
  await look(`${MANY} million, ${EXPIRED} million expired codes and as many revocations`, MANY * MILLION);
  const purge = spawn(process.execPath, ['dist/cli.js', 'purge'], { env: environment, stdio: 'ignore' });
  await look(`${MANY} million, and a purge at work`, MANY * MILLION);
  if (purge.exitCode !== null) throw new Error('the purge ended before its looks did');
  purge.kill('SIGKILL');
  console.table(await sizes());

  /** @param {number} count */
  async function seedExpired(count) {
    for (let first = 1; first <= count; first += MILLION) {
      const numbers = `seq_${first}_to_${first + MILLION - 1}`;
      const expires = 'NOW(3) - INTERVAL (seq % 3600) SECOND';
      await connection.query(`
        INSERT INTO one_time_code (hash, kind, client_id, subject, organization_id, expires_at)
        SELECT SHA2(seq, 256), 'transfer', 'site', MD5(seq), '${ORGANIZATION}', ${expires} FROM ${numbers}`);
      await connection.query(`
        INSERT INTO revocation (kind, value, issued_before, expires_at)
        SELECT 'jti', MD5(seq), NOW(3), ${expires} FROM ${numbers}`);
    }
  }

  async function sizes() {
    await connection.query('ANALYZE TABLE customer_identity, one_time_code, revocation');
    const [found] = await connection.query(`
      SELECT table_name AS name, table_rows AS many, data_length AS data, index_length AS indexes
      FROM information_schema.tables WHERE table_schema = DATABASE() AND table_rows > 1000`);
    const tables = /** @type {{ name: string, many: number, data: number, indexes: number }[]} */ (found);
    const megabytes = (/** @type {number} */ bytes) => Math.round(bytes / 2 ** 20);
    return Object.fromEntries(
      tables.map(({ name, many, data, indexes }) => [
        name,
        { rows: Number(many), 'data MB': megabytes(data), 'indexes MB': megabytes(indexes) },
      ]),
    );
  }
});
