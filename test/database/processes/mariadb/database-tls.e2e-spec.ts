import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import mysql from 'mysql2/promise';
import { generate, type SubjectAltNameEntry } from 'selfsigned';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { writeKeySet } from '../../../../packages/conformance-kit/src/key-set-file.js';
import { onMariadb } from '../../../../packages/conformance-kit/src/test-database.js';
import { startMariadb } from '../../../../scripts/mariadb.js';
import { findMariadb } from '../../../../scripts/programs.js';
import { type Ended, PORTS, runCli, TestProcess } from '../../../support/processes.js';
import { temporaryFolder } from '../../../support/project-files.js';

type Mariadb = Awaited<ReturnType<typeof startMariadb>>;

const LOCALHOST: SubjectAltNameEntry = { type: 2, value: 'localhost' };
const IP: SubjectAltNameEntry = { type: 7, ip: '127.0.0.1' };
const OTHER: SubjectAltNameEntry = { type: 2, value: 'db.example' };

const folder = temporaryFolder('database-tls');
const [KEY, CERTIFICATE, SELF_ISSUED] = ['key.pem', 'certificate.pem', 'ca.pem'].map((name) => join(folder, name)) as [
  string,
  string,
  string,
];

/** Writes a self-signed certificate for these names to the server’s files and as `ssl_ca`. */
async function writeCertificate(...altNames: SubjectAltNameEntry[]): Promise<void> {
  const extensions = [{ name: 'subjectAltName' as const, altNames }];
  const { private: key, cert } = await generate([{ name: 'commonName', value: 'database' }], {
    keyType: 'ec',
    extensions,
  });
  writeFileSync(KEY, key);
  writeFileSync(CERTIFICATE, cert);
  writeFileSync(SELF_ISSUED, cert);
}

function startWithTls(...extra: string[]): Promise<Mariadb> {
  return startMariadb({ extra: [`--ssl-key=${KEY}`, `--ssl-cert=${CERTIFICATE}`, ...extra] });
}

/** Runs `migrate --check`, which prints `up to date` or `migrations are pending` once it is connected. */
function check(server: Mariadb, host: string, query: string, more: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return runCli(['migrate', '--check'], environmentFor(server, host, query, more));
}

function environmentFor(server: Mariadb, host: string, query: string, more: NodeJS.ProcessEnv = {}) {
  const url = Object.assign(new URL(server.url('mysql')), { hostname: host });
  return { DATABASE_URL: `${url}?${query}`, DATA_DIR: folder, SIGNING_KEYS_FILE: join(folder, 'keys.json'), ...more };
}

const CONNECTED = { code: 1, stdout: 'migrations are pending\n' };

function expectConnectionError(ended: Ended, message: RegExp): void {
  expect(ended).toMatchObject({ code: 1, stdout: '' });
  expect(ended.stderr).toMatch(message);
}

describe.skipIf(!onMariadb || !findMariadb())('TLS to the database', () => {
  let server: Mariadb;
  beforeAll(async () => {
    writeKeySet(join(folder, 'keys.json'));
    await writeCertificate(LOCALHOST);
    server = await startWithTls();
  });
  afterAll(() => server?.stop());

  async function serveCertificate(...altNames: SubjectAltNameEntry[]): Promise<void> {
    await writeCertificate(...altNames);
    const connection = await mysql.createConnection(server.url());
    await connection.query('FLUSH SSL');
    connection.destroy();
  }

  it('connects to a server whose certificate has the host name of DATABASE_URL', async () => {
    await serveCertificate(OTHER, LOCALHOST);
    expect(await check(server, 'localhost', `ssl_ca=${SELF_ISSUED}`)).toMatchObject(CONNECTED);
  });

  it('refuses a server whose certificate has another name, and logs the names in the certificate', async () => {
    await serveCertificate(OTHER);
    const ended = await check(server, 'localhost', `ssl_ca=${SELF_ISSUED}`);
    expectConnectionError(ended, /does not match certificate's altnames: Host: localhost.*DNS:db\.example/);
  });

  it('prevents a process from serving while the certificate has another name, and logs the cause', async () => {
    await serveCertificate(OTHER);
    const environment = { ...PORTS, ...environmentFor(server, 'localhost', `ssl_ca=${SELF_ISSUED}`) };
    const service = TestProcess.start('main.js', [], environment);
    onTestFinished(() => service.signal('SIGKILL'));
    await service.says(/the process cannot serve yet; it tries again each second: .*does not match certificate/);
    expect(service.stdout).not.toMatch(/for callers/);
  });

  it('connects to an IP address that the certificate has', async () => {
    await serveCertificate(IP);
    expect(await check(server, '127.0.0.1', `ssl_ca=${SELF_ISSUED}`)).toMatchObject(CONNECTED);
  });

  it.each([
    ['for localhost', LOCALHOST],
    ['for another IP address', { type: 7, ip: '127.0.0.2' } as const],
    ['that has the IP address as a host name', { type: 2, value: '127.0.0.1' } as const],
  ])('refuses an IP address with a certificate %s', async (_, name) => {
    await serveCertificate(name);
    const ended = await check(server, '127.0.0.1', `ssl_ca=${SELF_ISSUED}`);
    expectConnectionError(ended, /does not match certificate's altnames: IP: 127\.0\.0\.1/);
  });

  it('trusts with ssl=true alone the authorities of Node and of NODE_EXTRA_CA_CERTS, and no others', async () => {
    await serveCertificate(LOCALHOST);
    expectConnectionError(await check(server, 'localhost', 'ssl=true'), /self-signed certificate/);
    const trusting = { NODE_EXTRA_CA_CERTS: SELF_ISSUED };
    expect(await check(server, 'localhost', 'ssl=true', trusting)).toMatchObject(CONNECTED);
    await serveCertificate(OTHER);
    expectConnectionError(
      await check(server, 'localhost', 'ssl=true', trusting),
      /does not match certificate's altnames/,
    );
  });

  it('refuses a server that supports at most TLS 1.1, also if Node is configured to allow it', async () => {
    await serveCertificate(LOCALHOST);
    const weak = 'DEFAULT@SECLEVEL=0'; // OpenSSL supports TLS 1.1 only at this security level.
    const old = await startWithTls('--tls-version=TLSv1.1', `--ssl-cipher=${weak}`);
    onTestFinished(() => old.stop());
    const allowing = { NODE_OPTIONS: `--tls-min-v1.1 --tls-cipher-list=${weak}` };
    const ended = await check(old, 'localhost', `ssl_ca=${SELF_ISSUED}`, allowing);
    expectConnectionError(ended, /unsupported protocol|version/i);
  });

  it('refuses a server without TLS if DATABASE_URL requires TLS', async () => {
    const plain = await startMariadb({ extra: ['--skip-ssl'] });
    onTestFinished(() => plain.stop());
    expectConnectionError(await check(plain, 'localhost', 'ssl=true'), /does not support secure connection/);
  });
});
