import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createEmptyDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { freePort } from '../../scripts/free-port.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import type { OpenApiResponsesDocument } from '../support/openapi-responses.js';
import { agentTokenOf, environmentOf, PORTS, TestProcess } from '../support/processes.js';
import { ACME, RIVAL, RIVAL_AGENT, RIVAL_SITE, testRegistry, writeRegistry } from '../support/test-registry.js';
import type { OpenApi } from './operations.js';
import { type Figures, type FuzzOptions, Run } from './run.js';
import { ADMIN_TOKEN, RESOURCE_SERVER, World } from './world.js';

/** Sends requests to a process of the service and checks each response. Rejects at the first violation. */
export async function fuzz(options: FuzzOptions): Promise<Figures> {
  const service = await startFuzzedService();
  try {
    const document = (await (await fetch(`${service.managementUrl}/openapi.json`)).json()) as OpenApi &
      OpenApiResponsesDocument;
    const run = new Run(
      options,
      { public: service.url, management: service.managementUrl },
      document,
      new World(service.agents),
    );
    const health = new Health(service);
    await health.check();
    const quarter = Math.floor(options.requests / 4);
    await run.send(0, quarter);
    const earlyMegabytes = await health.check();
    await run.send(quarter, options.requests);
    const lateMegabytes = await health.check();
    if (lateMegabytes > earlyMegabytes * 1.3 + 50)
      throw new Error(`memory grew from ${earlyMegabytes} MB to ${lateMegabytes} MB`);
    return run.figures([earlyMegabytes, lateMegabytes]);
  } finally {
    await service.remove();
  }
}

interface FuzzedService {
  process: TestProcess;
  url: string;
  managementUrl: string;
  /** Agent access tokens by organization. */
  agents: Record<string, string>;
  remove(): Promise<void>;
}

async function startFuzzedService(): Promise<FuzzedService> {
  const database = await createEmptyDatabase();
  const registry = { ...testRegistry(), resource_servers: [RESOURCE_SERVER] };
  const environment = {
    ...environmentOf(database),
    REGISTRY_FILE: writeRegistry(join(database.folder, 'registry.yaml'), registry),
    MIGRATE_ON_START: 'true',
    AUTH_URL: 'https://auth.example',
    TRUST_PROXY: '1',
    LOG_LEVEL: 'error',
    ADMIN_TOKENS: `fuzz:all:${ADMIN_TOKEN}`,
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
  const agents = {
    [ACME]: await agentTokenOf(environment),
    [RIVAL]: await agentTokenOf(environment, RIVAL_AGENT.email, RIVAL_SITE),
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

const FIELDS = ['access_token', 'entity_id', 'expires_in', 'organization_id', 'token_type'];

/** Checks that the process has not been restarted, is ready, and still issues tokens. */
class Health {
  private startedAt: string | undefined;

  constructor(private readonly service: FuzzedService) {}

  /** Throws an error for an unhealthy process. Returns its resident memory in megabytes. */
  async check(): Promise<number> {
    const { process, url, managementUrl } = this.service;
    if (process.code !== null) throw new Error(`the process has ended with ${process.code}: ${process.stderr}`);
    const errorLine = /^.*(ERROR|FATAL|UnhandledPromise|DeprecationWarning).*$/m.exec(process.stdout + process.stderr);
    if (errorLine) throw new Error(`the process printed: ${errorLine[0]}`);
    const ready = await fetch(`${managementUrl}/health/ready`);
    if (ready.status !== 200) throw new Error(`the process is not ready: ${ready.status}`);
    await this.issuesTokens(url);
    return this.memory(await (await fetch(`${managementUrl}/metrics`)).text());
  }

  /** Checks that a valid request gets a token response with exactly the expected fields. */
  private async issuesTokens(url: string): Promise<void> {
    const response = await fetch(url + TOKEN, { method: 'POST', body: JSON.stringify(cookieBody()) });
    const body = (await response.json()) as Record<string, unknown>;
    const fields = Object.keys(body).sort().join();
    const isRight = response.status === 200 && fields === FIELDS.join() && body.organization_id === ACME;
    if (!isRight) throw new Error(`a valid request gets ${response.status} ${JSON.stringify(body)}`);
  }

  private memory(metrics: string): number {
    const [, startedAt] = /^process_start_time_seconds (\S+)$/m.exec(metrics) ?? [];
    this.startedAt ??= startedAt;
    if (startedAt !== this.startedAt) throw new Error('the process was restarted');
    const [, bytes] = /^process_resident_memory_bytes (\S+)$/m.exec(metrics) ?? [];
    return Math.round(Number(bytes) / 2 ** 20);
  }
}
