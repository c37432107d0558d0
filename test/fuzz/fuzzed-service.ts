import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createEmptyDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { freePort } from '../../scripts/free-port.js';
import { environmentOf, PORTS, runCli, TestProcess } from '../support/processes.js';
import {
  ACME,
  ACME_AGENT,
  ACME_SITE,
  RIVAL,
  RIVAL_AGENT,
  RIVAL_SITE,
  testRegistry,
  writeRegistry,
} from '../support/test-registry.js';
import { ADMIN_TOKEN, RESOURCE_SERVER } from './cast.js';

/** A process of the built service for the fuzzer. */
export interface FuzzedService {
  process: TestProcess;
  url: string;
  managementUrl: string;
  /** Agent access tokens by organization. */
  agents: Record<string, string>;
  remove(): Promise<void>;
}

export async function startFuzzedService(): Promise<FuzzedService> {
  const database = await createEmptyDatabase();
  const registry = { ...testRegistry(), resource_servers: [RESOURCE_SERVER] };
  const environment = {
    ...environmentOf(database),
    REGISTRY_FILE: writeRegistry(join(database.folder, 'registry.yaml'), registry),
    MIGRATE_ON_START: 'true',
    AUTH_URL: 'https://auth.example',
    TRUST_PROXY: '1',
    LOG_LEVEL: 'error',
    ADMIN_TOKEN,
  };
  const [port, managementPort] = [String(await freePort()), String(await freePort())];
  const process = TestProcess.start('main.js', [], {
    ...PORTS,
    PORT: port,
    MANAGEMENT_PORT: managementPort,
    ...environment,
  });
  const url = `http://127.0.0.1:${port}`;
  const managementUrl = `http://127.0.0.1:${managementPort}`;
  await waitUntilReady(process, managementUrl);
  const tokenOf = async (email: string, client: string) => {
    const parameters = ['agent-token', '--email', email, '--client-id', client, '--scope', 'customers:own'];
    const { stdout, stderr } = await runCli(parameters, environment);
    if (stdout.trim() === '') throw new Error(`no token for ${email}: ${stderr}`);
    return stdout.trim();
  };
  const agents = {
    [ACME]: await tokenOf(ACME_AGENT.email, ACME_SITE),
    [RIVAL]: await tokenOf(RIVAL_AGENT.email, RIVAL_SITE),
  };
  const remove = async () => {
    process.signal('SIGKILL');
    await process.ended;
    await database.remove();
  };
  return { process, url, managementUrl, agents, remove };
}

/** Waits with the readiness check, because at log level `error` the process does not log that it listens. */
async function waitUntilReady(process: TestProcess, managementUrl: string): Promise<void> {
  for (;;) {
    if (process.code !== null) throw new Error(`the process ended with the output: ${process.stdout}${process.stderr}`);
    const response = await fetch(`${managementUrl}/health/ready`).catch(() => undefined);
    if (response?.ok) return;
    await sleep(50);
  }
}
