import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { writeKeySet } from '../../../../packages/conformance-kit/src/key-set-file.js';
import { onMariadb } from '../../../../packages/conformance-kit/src/test-database.js';
import { freePort } from '../../../../scripts/free-port.js';
import { findFaketime } from '../../../../scripts/programs.js';
import { bearer } from '../../../support/authorization-headers.js';
import { useDatabase } from '../../../support/databases.js';
import { manage } from '../../../support/management-api.js';
import { alertRules, type Document } from '../../../support/manifests.js';
import { environmentOf, PORTS, PRODUCTION, startServiceProcess, TestProcess } from '../../../support/processes.js';
import { inputSeries, promtool, runPromtool } from '../../../support/promtool.js';
import { SettableClock } from '../../../support/settable-clock.js';
import { startTcpProxy, type TcpProxy } from '../../../support/tcp-proxy.js';
import { writeRegistry } from '../../../support/test-registry.js';
import { httpClientOf } from '../../../support/test-service.js';
import { newCustomer } from '../../../support/transfers.js';

const OPERATOR = 'operator-token-of-the-tests-0123456789';
const TARGET = { job: 'customer-authorization', namespace: 'customer-authorization' };
const SCRAPE_SECONDS = 15;
const SCRAPE_COUNT = 20;
const METRICS = /^(cas_(?:clock_offset_seconds|configuration_info|database_statements_total))(?:\{(.*)\})? (.*)$/gm;

interface Sample {
  metric: string;
  labels: Record<string, string>;
  value: number;
}

type PodName = 'right' | 'also-right' | 'other-keys' | 'other-clock' | 'cut-off';

describe.skipIf(!onMariadb || !findFaketime() || !promtool)('of five processes, the alerts name the odd one', () => {
  const database = useDatabase();
  const processes: TestProcess[] = [];
  const managementUrls = {} as Record<PodName, string>;
  let proxy: TcpProxy;
  let scrapes: Record<PodName, Sample[]>[];

  beforeAll(async () => {
    const { folder } = database;
    const environment = { ...environmentOf(database), ...PRODUCTION, ADMIN_TOKENS: `alice:all:${OPERATOR}` };
    const start = async (pod: PodName, more: NodeJS.ProcessEnv = {}) => {
      const service = await startServiceProcess({ ...environment, ...more });
      processes.push(service.process);
      managementUrls[pod] = service.managementUrl;
      return service;
    };
    const REGISTRY_FILE = writeRegistry(join(folder, 'registry.yaml'));
    const right = await start('right', { MIGRATE_ON_START: 'true', REGISTRY_FILE });
    await start('also-right');
    await start('other-keys', { SIGNING_KEYS_FILE: writeKeySet(join(folder, 'other-keys.json')) });
    proxy = await startTcpProxy(database.url);
    await start('cut-off', { DATABASE_URL: proxy.through(database.url) });
    const clock = new SettableClock(folder);
    clock.set(300);
    const port = await freePort();
    const waiting = { ...PORTS, ...environment, ...clock.environment, MANAGEMENT_PORT: String(port) };
    processes.push(TestProcess.start('main.js', [], waiting));
    managementUrls['other-clock'] = `http://127.0.0.1:${port}`;
    await processes.at(-1)?.says(/the clock of this machine is 300 s ahead/);

    await proxy.cut();
    await failMoreThan(0);
    const { access_token: token } = await newCustomer(httpClientOf(right.url));
    for (const pod of ['right', 'other-keys'] as const)
      await manage({ managementUrl: managementUrls[pod] }, 'POST', '/oauth2/introspect', bearer(OPERATOR), { token });
    const before = await scrapeAll();
    await failMoreThan(await failedStatements());
    scrapes = [before, await scrapeAll()];
  });
  afterAll(async () => {
    for (const process of processes) process.signal('SIGKILL');
    await Promise.all(processes.map(({ ended }) => ended));
    await proxy?.close();
  });

  const metricsOf = async (pod: PodName) =>
    (await manage({ managementUrl: managementUrls[pod] }, 'GET', '/metrics')).text;

  async function scrape(pod: PodName): Promise<Sample[]> {
    return Array.from((await metricsOf(pod)).matchAll(METRICS), ([, metric = '', inside = '', value]) => ({
      metric,
      labels: Object.fromEntries(Array.from(inside.matchAll(/(\w+)="([^"]*)"/g), ([, name, label]) => [name, label])),
      value: Number(value),
    }));
  }

  async function failedStatements(): Promise<number> {
    return (await scrape('cut-off')).find(({ labels }) => labels.outcome === 'unavailable')?.value ?? Number.NaN;
  }

  const failMoreThan = (statements: number) =>
    vi.waitUntil(async () => (await failedStatements()) > statements, { timeout: 60_000 });

  async function scrapeAll(): Promise<Record<PodName, Sample[]>> {
    const pods = Object.keys(managementUrls) as PodName[];
    return Object.fromEntries(await Promise.all(pods.map(async (pod) => [pod, await scrape(pod)])));
  }

  /** The samples of all processes, from when the fault began: each goes on as it did between two scrapes. */
  function seriesOfAll() {
    const [first, second] = scrapes as [Record<PodName, Sample[]>, Record<PodName, Sample[]>];
    return (Object.entries(first) as [PodName, Sample[]][]).flatMap(([pod, samples]) =>
      samples.map(({ metric, labels, value }, index) => {
        const growth = metric.endsWith('_total') ? (second[pod][index]?.value ?? 0) - value : 0;
        const all = { ...labels, ...TARGET, pod, instance: managementUrls[pod] };
        return inputSeries([metric, all, `${value}+${growth}x${SCRAPE_COUNT}`]);
      }),
    );
  }

  /** Expects that an alert fires for one process only. */
  function expectAlert(alert: string, pod: PodName, evaluatedAt: string): void {
    const { labels, annotations } = alertRules.find((rule) => rule.alert === alert) as Document;
    const info = alert === 'CustomerAuthorizationPodsDiffer' ? labelsOf(pod, 'cas_configuration_info') : {};
    const exp_labels = { ...labels, ...info, ...TARGET, pod, instance: managementUrls[pod] };
    const exp_alerts = [{ exp_labels, exp_annotations: annotations }];
    const alert_rule_test = [{ alertname: alert, eval_time: evaluatedAt, exp_alerts }];
    runPromtool([{ interval: `${SCRAPE_SECONDS}s`, input_series: seriesOfAll(), alert_rule_test }], '30s');
  }

  const labelsOf = (pod: PodName, metric: string) =>
    scrapes[0]?.[pod].find((sample) => sample.metric === metric)?.labels ?? {};

  it('within 2 minutes after it has another key file, with which it rejects the tokens of others', async () => {
    expectAlert('CustomerAuthorizationPodsDiffer', 'other-keys', '1m45s');
    const rejected = 'cas_introspections_total{active="false",reason="unknown_key"} 1';
    expect(await metricsOf('other-keys')).toContain(rejected);
    expect(await metricsOf('right')).not.toContain(rejected);
  });

  it('within 2 minutes after its clock is wrong, also while it waits for its first readiness', () => {
    expectAlert('CustomerAuthorizationClockDiffers', 'other-clock', '1m45s');
  });

  it('within 5 minutes after it was cut off from the database, although it is ready', async () => {
    expectAlert('CustomerAuthorizationPodWithoutDatabase', 'cut-off', '4m45s');
    expect((await manage({ managementUrl: managementUrls['cut-off'] }, 'GET', '/health/ready')).status).toBe(200);
  });
});
