import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { onMariadb } from '../../../../packages/conformance-kit/src/test-database.js';
import { findMariadb } from '../../../../scripts/programs.js';
import { cookieBody, TOKEN } from '../../../support/cookie-grant.js';
import { type PrivateDatabase, startPrivateDatabase } from '../../../support/private-database.js';
import {
  environmentOf,
  PORTS,
  runCli,
  type ServiceProcess,
  startServiceProcess,
  TestProcess,
} from '../../../support/processes.js';
import { startTcpProxy, type TcpProxy } from '../../../support/tcp-proxy.js';
import { testRegistry, writeRegistry } from '../../../support/test-registry.js';
import { request } from '../../../support/test-service.js';

describe.skipIf(!onMariadb || !findMariadb())('DATABASE_URL_FILE of a process that runs', () => {
  let database: PrivateDatabase;
  let proxy: TcpProxy;
  let service: ServiceProcess;
  let environment: NodeJS.ProcessEnv;
  let passwords = 0;
  /** The content with which the service runs at the beginning of a test. */
  let url: string;
  const path = () => join(database.folder, 'database-url');
  const writeUrl = (text: string) => writeFileSync(path(), text);

  beforeAll(async () => {
    database = await startPrivateDatabase();
    proxy = await startTcpProxy(database.url);
    url = database.urlWith({ port: String(proxy.port) });
    writeUrl(url);
    const registry = writeRegistry(join(database.folder, 'registry.yaml'), testRegistry());
    environment = {
      ...{ ...environmentOf(database), DATABASE_URL: undefined, DATABASE_URL_FILE: path() },
      MIGRATE_ON_START: 'false',
    };
    await runCli(['registry', 'apply', registry], environment);
    service = await startServiceProcess(environment);
  });
  afterAll(async () => {
    await service?.terminate();
    await proxy?.close();
    await database?.remove();
  });

  const newCustomer = async ({ url }: { url: string }) => {
    const { status } = await request(url + TOKEN, { method: 'POST', body: JSON.stringify(cookieBody()) });
    return status;
  };
  const changePassword = async () => {
    const password = `password-of-the-test-${++passwords}`;
    await database.administer(`ALTER USER 'service'@'%' IDENTIFIED BY '${password}'`);
    return password;
  };
  const isInvalid = async () => {
    const { text } = await request(`${service.managementUrl}/metrics`, {});
    return /^cas_file_invalid\{file="DATABASE_URL_FILE"\} (\d)/m.exec(text)?.[1];
  };
  const withParts = (parts: object) => Object.assign(new URL(url), parts).href;

  it('leads to a new password that was set in place, although the process was not started again', async () => {
    const password = await changePassword();
    await database.disconnect();
    await expect.poll(() => newCustomer(service)).toBe(503);
    url = withParts({ password });
    writeUrl(url);
    await expect.poll(() => newCustomer(service)).toBe(200);
    await service.process.says(/DATABASE_URL_FILE: changed; the new content is in use/);
    expect(service.process.stdout + service.process.stderr).not.toContain('password-of-the-test');
  });

  it('leads to another account before the first one is locked', async () => {
    await database.administer(
      "CREATE USER 'service2'@'%' IDENTIFIED BY 'password-of-the-test-second'",
      "GRANT SELECT, INSERT, UPDATE, DELETE ON service.* TO 'service2'@'%'",
    );
    url = withParts({ username: 'service2', password: 'password-of-the-test-second' });
    writeUrl(`${url}\n`);
    expect(await newCustomer(service)).toBe(200);
    await database.administer("ALTER USER 'service'@'%' ACCOUNT LOCK");
    await database.disconnect();
    await expect.poll(() => newCustomer(service)).toBe(200);
    await database.administer("ALTER USER 'service'@'%' ACCOUNT UNLOCK");
  });

  it.each<[string, () => string | undefined]>([
    ['has a wrong password', () => withParts({ password: 'password-of-the-test-wrong' })],
    ['is written in part', () => url.slice(0, -3)],
    ['is written up to the host', () => url.slice(0, url.lastIndexOf('/'))],
    ['names another database', () => withParts({ pathname: '/mysql' })],
    ['has another option', () => `${url}?ssl=true`],
    ['names a host that does not exist', () => withParts({ hostname: 'password-of-the-test.invalid' })],
    ['is empty', () => ''],
    ['is no URL', () => 'password-of-the-test'],
    ['is missing', () => undefined],
  ])('changes nothing if it %s', async (_, contentOf) => {
    const content = contentOf();
    if (content === undefined) rmSync(path());
    else writeUrl(content);
    await proxy.cut(); // a connection that cannot be opened lets the process read the file
    await expect.poll(isInvalid).toBe('1');
    await proxy.restore();
    await expect.poll(() => newCustomer(service)).toBe(200);
    expect(service.process.stdout + service.process.stderr).not.toContain('password-of-the-test');
    writeUrl(url);
    await proxy.cut();
    await expect.poll(isInvalid).toBe('0');
    await proxy.restore();
  });

  it('leads to another port after the server has moved', async () => {
    await proxy.cut();
    await expect.poll(() => newCustomer(service)).toBe(503);
    writeUrl(withParts({ port: new URL(database.url).port }));
    await expect.poll(() => newCustomer(service)).toBe(200);
    await proxy.restore();
  });

  it('leads to the account that it has later if the process starts with a wrong password', async () => {
    writeUrl(withParts({ password: 'password-of-the-test-wrong' }));
    const starting = TestProcess.start('main.js', [], { ...PORTS, ...environment });
    onTestFinished(() => starting.signal('SIGKILL'));
    await starting.says(/the process cannot serve yet; it tries again each second: Access denied/);
    writeUrl(url);
    const [, port] = await starting.says(/port (\d+) for callers/);
    expect(await newCustomer({ url: `http://127.0.0.1:${port}` })).toBe(200);
    expect(starting.stdout + starting.stderr).not.toContain('password-of-the-test');
  });
});
