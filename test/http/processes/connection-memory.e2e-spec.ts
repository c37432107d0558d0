import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createTestDatabase,
  onMariadb,
  type TestDatabase,
} from '../../../packages/conformance-kit/src/test-database.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { environmentOf, type ServiceProcess, startServiceProcess } from '../../support/processes.js';
import { RawConnection } from '../../support/raw-http.js';
import { request } from '../../support/test-service.js';

const OTHER_CONNECTION_COUNT = 4_000;
/** Garbage is collected as early as in the container image, which sets these V8 options. */
const NODE_OPTIONS = '--max-semi-space-size=8 --max-old-space-size=128';
const MAX_REQUEST_BYTES = 16 * 1024;
const START = `POST ${TOKEN} HTTP/1.1\r\nHost: auth.example\r\n`;
const LINES = Array.from({ length: 95 }, (_, index) => `X-${index}: ${'x'.repeat(150)}\r\n`).join('');

describe.skipIf(onMariadb || process.platform !== 'linux')('the memory of a process', { timeout: 300_000 }, () => {
  let database: TestDatabase;
  let service: ServiceProcess;
  let connections: RawConnection[];
  beforeEach(async () => {
    connections = [];
    database = await createTestDatabase();
    service = await startServiceProcess({ ...environmentOf(database), MIGRATE_ON_START: 'true', NODE_OPTIONS });
  });
  afterEach(async () => {
    for (const connection of connections) connection.abort();
    service.process.signal('SIGKILL');
    await service.process.ended;
    await database.remove();
  });

  /** The resident set size, in bytes. */
  const memory = () =>
    1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${service.process.pid}/status`, 'utf8'))?.[1]);
  const open = async (bytes: string) => {
    const connection = await RawConnection.open(service.url, { allowHalfOpen: true });
    connections.push(connection.stopReading().send(bytes));
  };

  it.each<[string, number, string]>([
    ['a header of 16 KiB without its end', 100_000_000, `${START}${LINES}`.padEnd(MAX_REQUEST_BYTES - 1, 'x')],
    [
      'a body of 16 KiB without its end',
      150_000_000,
      `${START}Content-Length: ${MAX_REQUEST_BYTES}\r\n${LINES}\r\n${' '.repeat(MAX_REQUEST_BYTES - 1)}`,
    ],
  ])(
    `is bounded while ${OTHER_CONNECTION_COUNT} connections have sent %s, and other clients are served when these end`,
    async (_what, maxGrowthBytes, bytes) => {
      const before = memory();
      for (let opened = 0; opened < OTHER_CONNECTION_COUNT; opened++) await open(bytes);
      expect(memory() - before).toBeLessThan(maxGrowthBytes);
      const status = () =>
        request(`${service.url}/.well-known/jwks.json`, {}).then(
          (response) => response.status,
          () => 'no response',
        );
      await expect.poll(status, { timeout: 60_000, interval: 500 }).toBe(200);
    },
  );

  it('is bounded while bodies arrive in chunks of one byte', async () => {
    const before = memory();
    const bytes = `${START}Transfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(MAX_REQUEST_BYTES - 1)}`;
    for (let opened = 0; opened < 60; opened++) await open(bytes);
    for (const connection of connections) await connection.sent();
    expect((await request(`${service.url}/.well-known/jwks.json`, {})).status).toBe(200);
    expect(memory() - before).toBeLessThan(100_000_000);
  });
});
