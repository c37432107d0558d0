import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { runCli, type ServiceProcess, startServiceProcess } from '../../support/processes.js';
import { ACME_AGENT, ACME_ORIGIN, ACME_SITE, writeRegistry } from '../../support/test-registry.js';
import { request } from '../../support/test-service.js';
import { REQUEST_PATH_FILES } from './request-path-files.js';

const ROOT = join(import.meta.dirname, '../../..');
/** The most files that a reader should have to open for one request. */
const MAX_FILES = { customer: 28, agent: 32 };
/** Longer than every interval of the process but that of `RARE`, the longest of which is 2 s. */
const IDLE_MS = 6_000;
/** Runs each 15 s, and enters files that requests enter too. */
const RARE = 'operator/registry/offboarding/offboarding.ts';

/** Writes the coverage since the last call when the process gets the signal. */
const TAKE_COVERAGE = `data:text/javascript,${encodeURIComponent(
  "import v8 from 'node:v8'; process.on('SIGUSR2', () => v8.takeCoverage());",
)}`;

interface Coverage {
  result: { url: string; functions: { functionName: string; ranges: { startOffset: number; count: number }[] }[] }[];
}

const folder = mkdtempSync(join(tmpdir(), 'request-path-'));
const reports = mkdtempSync(join(folder, 'coverage-'));
let service: ServiceProcess;
let idle: Set<string>;
let cookie = '';
let agent: Record<string, string>;

const visit = async () => {
  const body = JSON.stringify(cookieBody());
  const response = await request(service.url + TOKEN, {
    method: 'POST',
    body,
    headers: { origin: ACME_ORIGIN, cookie },
  });
  cookie = cookieHeader(response);
  return response.status;
};
const asAgent = async () => {
  const body = JSON.stringify(agentTokenBody({ external_id: 'user-1' }));
  return (await request(service.url + TOKEN, { method: 'POST', body, headers: agent })).status;
};

beforeAll(async () => {
  const shared = {
    DATA_DIR: folder,
    REGISTRY_FILE: writeRegistry(join(folder, 'registry.yaml')),
    AUTH_URL: 'http://x',
  };
  const NODE_OPTIONS = `--import ${TAKE_COVERAGE}`;
  const coverage = { NODE_OPTIONS, NODE_V8_COVERAGE: reports, NODE_COMPILE_CACHE: undefined }; // exact without a cache
  service = await startServiceProcess({ ...shared, ...coverage, RATE_LIMIT: undefined });
  const named = ['--email', ACME_AGENT.email, '--client-id', ACME_SITE, '--scope', 'customers:own'];
  agent = bearer((await runCli(['agent-token', ...named], shared)).stdout.trim());
  // the first requests also run what happens once in each process
  for (let count = 0; count < 3; count++) expect([await visit(), await asAgent()]).toEqual([200, 200]);
  await takeFiles();
  do {
    await sleep(IDLE_MS);
    idle = await takeFiles();
  } while (idle.has(RARE));
  idle.add(RARE);
});
afterAll(async () => {
  await service?.terminate();
  rmSync(folder, { recursive: true, force: true });
});

/** The files of the service of which a function ran since the last call. */
async function takeFiles(): Promise<Set<string>> {
  service.process.signal('SIGUSR2');
  let coverage: Coverage | undefined;
  while (!coverage) {
    await sleep(50);
    const [name] = readdirSync(reports);
    coverage = name === undefined ? undefined : complete(join(reports, name));
  }
  for (const name of readdirSync(reports)) rmSync(join(reports, name));
  const start = `file://${join(ROOT, 'dist')}/`;
  const ran = coverage.result.filter(
    ({ url, functions }) =>
      url.startsWith(start) &&
      functions.some(({ functionName, ranges: [range] }) => {
        const isModule = functionName === '' && range?.startOffset === 0;
        return !isModule && (range?.count ?? 0) > 0;
      }),
  );
  return new Set(ran.map(({ url }) => url.slice(start.length).replace(/\.js$/, '.ts')));
}

/** The content of a report; `undefined` while the process is still writing it. */
function complete(path: string): Coverage | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

describe.each([
  ['customer', visit],
  ['agent', asAgent],
] as const)('the request of a known %s', (kind, send) => {
  it('enters the files of its list, and no others', async () => {
    await takeFiles();
    expect(await send()).toBe(200);
    const entered = [...(await takeFiles())].filter((file) => !idle.has(file));
    expect(entered.sort()).toEqual([...REQUEST_PATH_FILES.both, ...REQUEST_PATH_FILES[kind]].sort());
    expect(entered.length).toBeLessThanOrEqual(MAX_FILES[kind]);
  });
});
