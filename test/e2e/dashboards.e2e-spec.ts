import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { AgentBrowser, bearer, implicitToken } from '../support/agents.js';
import { manage } from '../support/management.js';
import { startTestService, type TestService } from '../support/service.js';
import { newCustomer, redeem, transferToken } from '../support/transfers.js';

const DEPLOY = join(import.meta.dirname, '../../deploy');
const read = (path: string) => readFileSync(join(DEPLOY, path), 'utf8');

/** Every query of the dashboard and of the alerts, by its title. */
function queries(): [title: string, query: string][] {
  const { panels } = JSON.parse(read('grafana/customer-authorization-service.json'));
  const rules = parseAllDocuments(read('kubernetes/overlays/production/monitoring.yaml'))
    .map((document) => document.toJS())
    .filter(({ kind }) => kind === 'PrometheusRule')
    .flatMap(({ spec }) => spec.groups.flatMap(({ rules }: { rules: { alert: string; expr: string }[] }) => rules));
  return [
    ...panels.flatMap(({ title, targets }: { title: string; targets: { expr: string }[] }) =>
      targets.map(({ expr }) => [title, expr]),
    ),
    ...rules.map(({ alert, expr }) => [alert, expr]),
  ];
}

/** The metrics of a query with the labels that it selects them by, and the labels that it groups by. */
function usesOf(query: string): { metrics: Map<string, string[]>; grouped: string[] } {
  const metrics = new Map<string, string[]>();
  const grouped: string[] = [];
  let current: string[] = [];
  parser.parse(query).iterate({
    enter({ name, from, to, node }) {
      const text = query.slice(from, to);
      if (node.type.isError) throw new Error(`${query}: not PromQL at ${from}`);
      if (name === 'VectorSelector') current = [];
      if (name === 'Identifier' && node.parent?.name === 'VectorSelector') metrics.set(text, current);
      if (name === 'LabelName') (node.parent?.name === 'GroupingLabels' ? grouped : current).push(text);
    },
  });
  return { metrics, grouped };
}

describe('the dashboard and the alerts', () => {
  let service: TestService;
  /** Labels by metric, of all samples of a service that has done a little of everything. */
  const labels = new Map<string, Set<string>>();

  beforeAll(async () => {
    service = await startTestService({ environment: { RATE_LIMIT: 'identities=9/60' } });
    const { access_token } = await newCustomer(service);
    await redeem(service, await transferToken(service, access_token));
    await implicitToken(service);
    await new AgentBrowser(service).signIn();
    await service.send('DELETE', '/v2/customer/token', bearer(access_token));
    for (let n = 0; n < 9; n++) await newCustomer(service);
    const { text } = await manage(service, 'GET', '/metrics');
    for (const line of text.split('\n').filter((each) => each !== '')) {
      const [, typed] = /^# TYPE (\S+)/.exec(line) ?? [];
      const [, name = typed, inside = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? /.exec(line) ?? [];
      const known = labels.get(name as string) ?? new Set();
      for (const [, label] of inside.matchAll(/(\w+)="/g)) known.add(label as string);
      labels.set(name as string, known);
    }
  });
  afterAll(() => service.stop());

  it.each(queries())('%s asks in PromQL for what the service really has: %s', (_title, query) => {
    const { metrics, grouped } = usesOf(query);
    expect(metrics.size).toBeGreaterThan(0);
    for (const [metric, selected] of metrics) {
      expect([...labels.keys()]).toContain(metric);
      const own = [...(labels.get(metric) ?? [])];
      for (const label of [...selected, ...grouped]) expect([...own, 'instance', 'revision']).toContain(label);
    }
  });
});
