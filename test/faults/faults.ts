import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { startMariadb } from '../../scripts/mariadb.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { environmentOf, PRODUCTION, type ServiceProcess, startServiceProcess } from '../support/processes.js';
import { testRegistry, writeRegistry } from '../support/test-registry.js';
import { checkHistory, type Findings } from './history.js';
import { Load } from './load.js';

type Mariadb = Awaited<ReturnType<typeof startMariadb>>;

/** A private durable MariaDB and the environment of service processes that use it. */
export class FaultTestEnvironment {
  private readonly processes: ServiceProcess[] = [];

  private constructor(
    readonly mariadb: Mariadb,
    readonly environment: Record<string, string>,
    readonly folder: string,
  ) {}

  static async build(extra: string[] = []): Promise<FaultTestEnvironment> {
    const mariadb = await startMariadb({ durable: true, extra });
    const folder = mkdtempSync(join(tmpdir(), 'faults-'));
    const url = await mariadb.createDatabase('faults');
    const environment = {
      ...environmentOf({ url, folder, remove: async () => undefined }),
      REGISTRY_FILE: writeRegistry(join(folder, 'registry.yaml'), testRegistry()),
      ...PRODUCTION,
      MIGRATE_ON_START: 'true',
    };
    return new FaultTestEnvironment(mariadb, environment, folder);
  }

  async start(more: Record<string, string> = {}): Promise<ServiceProcess> {
    const process = await startServiceProcess({ ...this.environment, ...more });
    this.processes.push(process);
    return process;
  }

  async remove(): Promise<void> {
    for (const { process } of this.processes) process.signal('SIGKILL');
    await this.mariadb.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const CALLER_COUNT = 60;

/** Injects a fault while callers send requests, and checks the history of the callers against the protocol. */
export async function underLoad(urls: () => string[], fault: (load: Load) => Promise<void>): Promise<Findings> {
  const load = new Load(urls, CALLER_COUNT);
  await sleep(1_000);
  await fault(load);
  await sleep(1_000);
  await load.stop();
  const before = load.history.length;
  const customers = await load.visitAll();
  const visits = load.history.slice(before);
  const findings = checkHistory(load.history);
  const { requests, statuses, longest } = findings;
  process.stdout.write(`${JSON.stringify({ requests, statuses, longest: Math.round(longest), customers })}\n`);
  expect(findings.violations.slice(0, 10)).toEqual([]);
  expect(visits.filter(({ status }) => status !== 200)).toEqual([]);
  expect(customers).toBeGreaterThan(10);
  return findings;
}

/** Waits until a process creates customers. */
export async function untilServing({ url }: ServiceProcess): Promise<void> {
  while (!(await isServing(url))) await sleep(20);
}

async function isServing(url: string): Promise<boolean> {
  try {
    const body = JSON.stringify(cookieBody());
    const { ok } = await fetch(url + TOKEN, { method: 'POST', body, signal: AbortSignal.timeout(2_000) });
    return ok;
  } catch {
    return false;
  }
}
