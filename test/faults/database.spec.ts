import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ServiceProcess } from '../support/processes.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { FaultyHouse, underLoad, untilReady } from './faults.js';

let house: FaultyHouse;
let service: ServiceProcess;
/** A process that reaches the database through a proxy of the test's own. */
let distant: ServiceProcess;
let proxy: TcpProxy;

beforeAll(async () => {
  house = await FaultyHouse.build();
  service = await house.start();
  const { DATABASE_URL } = house.environment as { DATABASE_URL: string };
  proxy = await startTcpProxy(DATABASE_URL);
  distant = await house.start({ DATABASE_URL: proxy.through(DATABASE_URL) });
});
afterAll(async () => {
  await proxy?.close();
  await house?.remove();
});

describe('whatever the database does, no code gives two tokens, no customer is lost, and nobody waits longer than 3 s', () => {
  it('frozen for 10 s: everybody is answered 503, and the service is ready within 1 s of its return', async () => {
    let recovery = 0;
    const { statuses } = await underLoad(
      () => [service.url],
      async ({ history }) => {
        process.kill(house.mariadb.pid(), 'SIGSTOP');
        const frozen = performance.now();
        await sleep(10_000);
        const during = history.filter(({ begun }) => begun > frozen);
        expect(new Set(during.map(({ status }) => status))).toEqual(new Set([503]));
        expect(during.length).toBeGreaterThan(60);
        process.kill(house.mariadb.pid(), 'SIGCONT');
        recovery = await untilReady(service);
      },
    );
    expect(recovery).toBeLessThan(1_000);
    expect(statuses.none).toBeUndefined();
  });

  it('killed and started again: only answers and 503, and every customer is still there', async () => {
    const { statuses } = await underLoad(
      () => [service.url],
      async () => {
        for (let round = 0; round < 3; round++) {
          house.mariadb.crash();
          await sleep(1_000);
          await house.mariadb.restart();
          await untilReady(service);
          await sleep(500);
        }
      },
    );
    expect(statuses.none).toBeUndefined();
    expect(statuses['503']).toBeGreaterThan(0);
  });

  it('connections reset, refused, slow and half open: the same', async () => {
    const { statuses } = await underLoad(
      () => [distant.url],
      async () => {
        await proxy.cut();
        await sleep(500);
        await proxy.restore();
        await untilReady(distant);
        proxy.freeze();
        await sleep(2_500);
        await proxy.restore(); // what was held back comes late
        await untilReady(distant);
        proxy.freeze();
        await sleep(500);
        proxy.failOver(); // those of before never answer
        await untilReady(distant);
      },
    );
    expect(statuses.none).toBeUndefined();
    expect(statuses['503']).toBeGreaterThan(0);
  });

  it('max_connections reached: 503 while nobody gets a connection, and good when they are free again', async () => {
    const hogs: mysql.Connection[] = [];
    await underLoad(
      () => [distant.url],
      async () => {
        const operator = await mysql.createConnection(house.mariadb.url());
        await operator.query('SET GLOBAL max_connections = 40');
        await proxy.cut(); // the connections that the process had
        await proxy.restore();
        for (;;) {
          const hog = await mysql.createConnection(house.mariadb.url()).catch(() => undefined);
          if (!hog) break;
          hogs.push(hog);
        }
        await sleep(2_000);
        for (const hog of hogs) hog.destroy();
        await operator.query('SET GLOBAL max_connections = 1000');
        await operator.end();
        await untilReady(distant);
      },
    );
    expect(hogs.length).toBeGreaterThan(0);
  });
});
