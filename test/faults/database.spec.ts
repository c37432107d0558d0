import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ServiceProcess } from '../support/processes.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { FaultTestEnvironment, underLoad, untilServing } from './faults.js';

let testEnvironment: FaultTestEnvironment;
let service: ServiceProcess;
/** A process that reaches the database through a proxy. */
let proxiedService: ServiceProcess;
let proxy: TcpProxy;

beforeAll(async () => {
  testEnvironment = await FaultTestEnvironment.build();
  service = await testEnvironment.start();
  const { DATABASE_URL } = testEnvironment.environment as { DATABASE_URL: string };
  proxy = await startTcpProxy(DATABASE_URL);
  proxiedService = await testEnvironment.start({ DATABASE_URL: proxy.through(DATABASE_URL) });
});
afterAll(async () => {
  await proxy?.close();
  await testEnvironment?.remove();
});

describe('no code gives two tokens, no customer is lost, and no caller waits longer than 3 s if the database', () => {
  it('is frozen for 10 s: callers get 503, and the service serves after the freeze', async () => {
    const { statuses } = await underLoad(
      () => [service.url],
      async ({ history }) => {
        process.kill(testEnvironment.mariadb.pid(), 'SIGSTOP');
        const frozenAt = performance.now();
        await sleep(10_000);
        const during = history.filter(({ begun }) => begun > frozenAt);
        expect(new Set(during.map(({ status }) => status))).toEqual(new Set([503]));
        expect(during.length).toBeGreaterThan(60);
        process.kill(testEnvironment.mariadb.pid(), 'SIGCONT');
        await untilServing(service);
      },
    );
    expect(statuses.none).toBeUndefined();
  });

  it('is killed and started again: callers get responses or 503', async () => {
    const { statuses } = await underLoad(
      () => [service.url],
      async () => {
        for (let round = 0; round < 3; round++) {
          testEnvironment.mariadb.crash();
          await sleep(1_000);
          await testEnvironment.mariadb.restart();
          await untilServing(service);
          await sleep(500);
        }
      },
    );
    expect(statuses.none).toBeUndefined();
    expect(statuses['503']).toBeGreaterThan(0);
  });

  it('resets, rejects, delays or half-opens connections: callers get responses or 503', async () => {
    const { statuses } = await underLoad(
      () => [proxiedService.url],
      async () => {
        await proxy.cut();
        await sleep(500);
        await proxy.restore();
        await untilServing(proxiedService);
        proxy.freeze();
        await sleep(2_500);
        await proxy.restore(); // The delayed bytes arrive late.
        await untilServing(proxiedService);
        proxy.freeze();
        await sleep(500);
        proxy.failOver(); // Connections from before the failover never respond.
        await untilServing(proxiedService);
      },
    );
    expect(statuses.none).toBeUndefined();
    expect(statuses['503']).toBeGreaterThan(0);
  });

  it('reaches max_connections: callers get 503 until connections are free again', async () => {
    const occupyingConnections: mysql.Connection[] = [];
    await underLoad(
      () => [proxiedService.url],
      async () => {
        const operator = await mysql.createConnection(testEnvironment.mariadb.url());
        await operator.query('SET GLOBAL max_connections = 40');
        await proxy.cut(); // Closes the existing connections of the process.
        await proxy.restore();
        for (;;) {
          const connection = await mysql.createConnection(testEnvironment.mariadb.url()).catch(() => undefined);
          if (!connection) break;
          occupyingConnections.push(connection);
        }
        await sleep(2_000);
        for (const connection of occupyingConnections) connection.destroy();
        await operator.query('SET GLOBAL max_connections = 1000');
        await operator.end();
        await untilServing(proxiedService);
      },
    );
    expect(occupyingConnections.length).toBeGreaterThan(0);
  });
});
