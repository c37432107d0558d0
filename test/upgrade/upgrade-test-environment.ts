import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import mysql from 'mysql2/promise';
import { expect } from 'vitest';
import { startMariadb } from '../../scripts/mariadb.js';
import { bearer } from '../support/authorization-headers.js';
import { environmentOf, type ServiceProcess, startServiceProcess, TestProcess } from '../support/processes.js';
import { ACME, writeRegistry } from '../support/test-registry.js';
import { type HttpClient, httpClientOf, request, type TestResponse } from '../support/test-service.js';
import { registryOfRelease1 } from './release-1-registry.js';

const ADMIN_TOKEN = 'operator-of-the-upgrade-0123456789';
/** The folder with the built release 1 (scripts/test-upgrade.js). */
const RELEASE_1 = process.env.TEST_RELEASE_1 as string;
const PROJECT = join(import.meta.dirname, '../..');

export type Release = 1 | 2;
/** A process of the service. */
export type Pod = HttpClient & ServiceProcess;

/** A private MariaDB, and processes of both releases that use one database with one set of keys. */
export class UpgradeTestEnvironment {
  private readonly pods: ServiceProcess[] = [];

  private constructor(
    private readonly mariadb: Awaited<ReturnType<typeof startMariadb>>,
    readonly environment: Record<string, string>,
    readonly folder: string,
  ) {}

  /** Migrates with release 1. */
  static async build(registry: object = registryOfRelease1()): Promise<UpgradeTestEnvironment> {
    const mariadb = await startMariadb();
    const folder = mkdtempSync(join(tmpdir(), 'upgrade-'));
    const url = await mariadb.createDatabase('upgrade');
    const testEnvironment = new UpgradeTestEnvironment(
      mariadb,
      {
        ...environmentOf({ url, folder, remove: async () => undefined }),
        REGISTRY_FILE: writeRegistry(join(folder, 'registry.yaml'), registry),
        ADMIN_TOKEN,
        AUTH_URL: 'https://auth.example',
        NODE_ENV: 'production',
      },
      folder,
    );
    await testEnvironment.run(1, 'migrate');
    return testEnvironment;
  }

  async start(release: Release, more: Record<string, string> = {}): Promise<Pod> {
    const started = await startServiceProcess({ ...this.environment, ...more }, '/', program(release, 'main.js'));
    const pod = { ...started, ...httpClientOf(started.url) };
    this.pods.push(pod);
    return pod;
  }

  /** Runs a command of the operator with the command line of a release. Returns its output. */
  async run(release: Release, ...parameters: string[]): Promise<string> {
    const { code, stdout, stderr } = await TestProcess.start(program(release, 'cli.js'), parameters, this.environment)
      .ended;
    expect([code, stderr], `${parameters.join(' ')}: ${stdout}`).toEqual([0, expect.any(String)]);
    return stdout;
  }

  /** Executes one statement of SQL. */
  async execute(sql: string, parameters: unknown[] = []): Promise<void> {
    const connection = await mysql.createConnection(
      (this.environment.DATABASE_URL as string).replace(/^mariadb:/, 'mysql:'),
    );
    await connection.query(sql, parameters);
    await connection.end();
  }

  async remove(): Promise<void> {
    for (const { process } of this.pods) process.signal('SIGKILL');
    await this.mariadb.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function program(release: Release, file: 'main.js' | 'cli.js'): `/${string}` {
  return join(release === 1 ? RELEASE_1 : PROJECT, 'dist', file) as `/${string}`;
}

/** Sends a request of the operator to the management port. */
export function manage(pod: Pod, method: string, path: string, body?: object): Promise<TestResponse> {
  const init = { method, headers: bearer(ADMIN_TOKEN), ...(body && { body: JSON.stringify(body) }) };
  return request(`${pod.managementUrl}${path}`, init);
}

/** An agent of Acme that the registry file does not list. */
export interface TestAgent {
  id: string;
  email: string;
  password: string;
}

export async function createAgent(pod: Pod, email: string): Promise<TestAgent> {
  const password = 'a long first pass phrase';
  const agent = { email, password, name: email, organization_id: ACME, scopes: ['customers:own'] };
  const { status, body } = await manage(pod, 'POST', '/admin/agents', agent);
  expect(status).toBe(201);
  return { id: body.id, email, password };
}
