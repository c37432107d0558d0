import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import mysql from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { onMariadb } from '../../../../packages/conformance-kit/src/test-database.js';
import { freePort } from '../../../../scripts/free-port.js';
import { findMariadb } from '../../../../scripts/programs.js';
import { cookieBody, TOKEN } from '../../../support/cookie-grant.js';
import { type PrivateDatabase, startPrivateDatabase } from '../../../support/private-database.js';
import { environmentOf, PORTS, startServiceProcess, TestProcess } from '../../../support/processes.js';
import { testRegistry, writeRegistry } from '../../../support/test-registry.js';
import { request } from '../../../support/test-service.js';

interface Outage {
  begin: string[];
  end: string;
  environment?: NodeJS.ProcessEnv;
  changesRegistry?: boolean;
  /** Whether another client has a connection of the account. The server counts it only if the limit is set before. */
  isConnected?: boolean;
}

const READ_ONLY = { begin: ['SET GLOBAL read_only = 1'], end: 'SET GLOBAL read_only = 0' };
const maxConnections = (count: number) => `GRANT USAGE ON *.* TO 'service'@'%' WITH MAX_USER_CONNECTIONS ${count}`;

const OUTAGES: Record<string, Outage> = {
  'the server is read-only': READ_ONLY,
  'the server is read-only and the registry file has changed': {
    ...READ_ONLY,
    changesRegistry: true,
    environment: { MIGRATE_ON_START: 'true' },
  },
  'the server is read-only and the process is the first one': {
    ...READ_ONLY,
    begin: ['UPDATE revocation_feed SET history = 0', ...READ_ONLY.begin],
  },
  'the server is read-only and must be migrated': {
    ...READ_ONLY,
    begin: [
      'DROP DATABASE service',
      'CREATE DATABASE service CHARACTER SET utf8mb4',
      'USE service',
      "GRANT CREATE, ALTER, DROP, INDEX, REFERENCES ON service.* TO 'service'@'%'",
      ...READ_ONLY.begin,
    ],
    environment: { MIGRATE_ON_START: 'true' },
  },
  'all sessions are read-only': { begin: ['SET GLOBAL tx_read_only = 1'], end: 'SET GLOBAL tx_read_only = 0' },
  'the account is locked': {
    begin: ["ALTER USER 'service'@'%' ACCOUNT LOCK"],
    end: "ALTER USER 'service'@'%' ACCOUNT UNLOCK",
  },
  'the account may change nothing': {
    begin: ["REVOKE INSERT, UPDATE, DELETE ON service.* FROM 'service'@'%'"],
    end: "GRANT INSERT, UPDATE, DELETE ON service.* TO 'service'@'%'",
  },
  'the account has no connection left': { begin: [maxConnections(1)], end: maxConnections(0), isConnected: true },
};

describe.skipIf(!onMariadb || !findMariadb())(
  'a process is alive, not ready, and serves later, if it starts while',
  () => {
    let database: PrivateDatabase;
    let environment: NodeJS.ProcessEnv;
    beforeAll(async () => {
      database = await startPrivateDatabase();
      environment = { ...environmentOf(database), MIGRATE_ON_START: 'false' };
      const first = { ...environment, MIGRATE_ON_START: 'true', REGISTRY_FILE: registryFile(false) };
      await (await startServiceProcess(first)).terminate();
    });
    afterAll(() => database?.remove());

    const statusOf = async (url: string, init = {}) => (await request(url, init)).status;
    const registryFile = (changed: boolean) => {
      const registry = testRegistry();
      if (changed) registry.organizations.push({ id: randomUUID(), name: 'New' });
      return writeRegistry(join(database.folder, 'registry.yaml'), registry);
    };

    it.each(Object.entries(OUTAGES))('%s', async (_, outage) => {
      const { begin, end, changesRegistry = false, isConnected, environment: more } = outage;
      await database.administer(...begin);
      const other = isConnected ? await mysql.createConnection(database.url.replace(/^\w+/, 'mysql')) : undefined;
      const MANAGEMENT_PORT = String(await freePort());
      const REGISTRY_FILE = registryFile(changesRegistry);
      const service = TestProcess.start('main.js', [], {
        ...{ ...PORTS, ...environment, MANAGEMENT_PORT, REGISTRY_FILE, ...more },
      });
      onTestFinished(() => service.signal('SIGKILL'));
      const health = `http://127.0.0.1:${MANAGEMENT_PORT}/health`;
      try {
        await service.says(/the process cannot serve yet; it tries again each second/);
        expect([await statusOf(`${health}/live`), await statusOf(`${health}/ready`)]).toEqual([200, 503]);
      } finally {
        other?.destroy();
        await database.administer(end);
      }
      const [, port] = await service.says(/port (\d+) for callers/);
      expect(await statusOf(`${health}/ready`)).toBe(200);
      const init = { method: 'POST', body: JSON.stringify(cookieBody()) };
      expect(await statusOf(`http://127.0.0.1:${port}${TOKEN}`, init)).toBe(200);
      service.signal('SIGTERM');
      expect((await service.ended).code).toBe(0);
    });
  },
);
