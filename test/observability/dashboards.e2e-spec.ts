import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Get, Module } from '@nestjs/common';
import { parser } from '@prometheus-io/lezer-promql';
import { beforeAll, describe, expect, it } from 'vitest';
import { generateKey } from '../../src/access-token/key-set.js';
import { ApiRoute } from '../../src/platform/http/api-route.js';
import { PublicController } from '../../src/platform/http/listener.decorators.js';
import { bearer } from '../support/authorization-headers.js';
import { AgentBrowser, implicitToken } from '../support/authorization-page.js';
import { beginWindow } from '../support/limit-windows.js';
import { manage } from '../support/management-api.js';
import { alertRules } from '../support/manifests.js';
import { read, temporaryFolder } from '../support/project-files.js';
import { newCustomer, redeem, transferToken } from '../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../support/use-service.js';

/** The recording rule with the job and the namespace of the alerts. */
const WATCHED = 'customer_authorization:watched';
/** Prometheus adds these labels to each sample. */
const PROMETHEUS_LABELS = { job: 'customer-authorization', namespace: 'customer-authorization' };
/** Of kube-state-metrics, about the CronJob of the manifests. */
const CRON_JOB_METRICS = ['kube_cronjob_created', 'kube_cronjob_status_last_successful_time'];
const CRON_JOB_LABELS = { namespace: PROMETHEUS_LABELS.namespace, cronjob: 'customer-authorization-registry' };
const { panels } = JSON.parse(read('deploy/grafana/customer-authorization-service.json'));

/** Every query of the dashboard and of the alerts, with its title. */
function queries(): [title: string, query: string][] {
  return [...panelQueries(), ...alertRules.map(({ alert, expr }): [string, string] => [alert, expr])];
}

function panelQueries(): [title: string, query: string][] {
  return panels.flatMap(({ title, targets }: { title: string; targets: { expr: string }[] }) =>
    targets.map(({ expr }) => [title, expr.replaceAll('$namespace', PROMETHEUS_LABELS.namespace)]),
  );
}

/** The metric that a query selects, and the filter on its labels. */
interface Selected {
  metric: string;
  matches: (labels: Map<string, string>) => boolean;
}

/** The metrics that a query selects, and the labels that it groups by. */
function usesOf(query: string): { selected: Selected[]; grouped: string[] } {
  const selected: Selected[] = [];
  const grouped: string[] = [];
  parser.parse(query).iterate({
    enter({ name, from, to, node }) {
      const text = query.slice(from, to);
      if (node.type.isError) throw new Error(`${query}: not PromQL at ${from}`);
      if (name === 'VectorSelector') selected.push(selectedBy(text));
      if (name === 'LabelName' && node.parent?.name === 'GroupingLabels') grouped.push(text);
    },
  });
  return { selected, grouped };
}

function selectedBy(selector: string): Selected {
  const [, metric = '', inside = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?$/s.exec(selector) ?? [];
  const rules = [...inside.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)].map(([, label = '', sign = '', value = '']) => {
    const pattern = new RegExp(`^(?:${sign.endsWith('~') ? value : value.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')})$`);
    return (labels: Map<string, string>) => pattern.test(labels.get(label) ?? '') !== sign.startsWith('!');
  });
  return { metric, matches: (labels) => rules.every((rule) => rule(labels)) };
}

/** Fails with a 500, for the alerts on server errors. */
@PublicController('failing')
class FailingController {
  @Get()
  @ApiRoute({ summary: 'Fail' })
  fail(): never {
    throw new Error('on purpose');
  }
}

@Module({ controllers: [FailingController] })
class FailingModule {}

describe('the dashboard and the alerts', () => {
  const SIGNING_KEYS_FILE = join(temporaryFolder('keys'), 'keys.json');
  const service = useService(() => {
    const now = Math.floor(Date.now() / 1000);
    writeFileSync(SIGNING_KEYS_FILE, JSON.stringify({ keys: [{ ...generateKey(now - 60), exp: now + 86_400 }] }));
    return { environment: { RATE_LIMIT: 'identities=9/60', SIGNING_KEYS_FILE }, modules: [FailingModule] };
  });
  /** The labels of each sample, by metric, after one request of each kind. */
  const samples = new Map<string, Map<string, string>[]>();

  beforeAll(async () => {
    beginWindow(service);
    const { access_token } = await newCustomer(service);
    await redeem(service, await transferToken(service, access_token));
    await implicitToken(service);
    await new AgentBrowser(service).signIn();
    await service.send('DELETE', '/v2/customer/token', bearer(access_token));
    for (let n = 0; n < 9; n++) await newCustomer(service);
    samples.set('up', [new Map(Object.entries(PROMETHEUS_LABELS))]); // of Prometheus itself
    for (const metric of CRON_JOB_METRICS) samples.set(metric, [new Map(Object.entries(CRON_JOB_LABELS))]);
    await service.send('GET', '/failing');
    await service.send('GET', '/v2/customer/info', bearer(access_token)); // ended: 401
    await manage(service, 'POST', '/oauth2/introspect', bearer(ADMIN_TOKEN), { token: access_token });
    const { text } = await manage(service, 'GET', '/metrics');
    for (const line of text.split('\n')) {
      const [, name, inside = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? /.exec(line) ?? [];
      if (name === undefined) continue;
      const labels = [...inside.matchAll(/(\w+)="([^"]*)"/g)].map(
        ([, label = '', value = '']) => [label, value] as const,
      );
      samples.set(name, [...(samples.get(name) ?? []), new Map([...Object.entries(PROMETHEUS_LABELS), ...labels])]);
    }
  });

  it.each(queries())('%s is valid PromQL for metrics and labels that are exported: %s', (_title, query) => {
    const { selected, grouped } = usesOf(query);
    expect(selected.length).toBeGreaterThan(0);
    const labels = ['instance', 'revision'];
    for (const { metric, matches } of selected.filter((each) => each.metric !== WATCHED)) {
      const own = samples.get(metric) ?? [];
      expect([metric, own.some(matches)]).toEqual([metric, true]);
      labels.push(...own.flatMap((each) => [...each.keys()]));
    }
    for (const label of grouped) expect(labels).toContain(label);
  });

  it.each(panelQueries())('the panel %s selects the job and the namespace: %s', (_title, query) => {
    for (const { metric } of usesOf(query).selected) {
      const job = CRON_JOB_METRICS.includes(metric) ? '' : `job="${PROMETHEUS_LABELS.job}",`;
      expect(query).toContain(`${metric}{${job}namespace="`);
    }
  });

  it.each(alertRules.map(({ alert, expr }) => [alert, expr]))(
    'a panel shows each metric of the alert %s',
    (_, expr) => {
      const shown = panelQueries().flatMap(([, query]) => usesOf(query).selected.map(({ metric }) => metric));
      const alerting = usesOf(expr).selected.map(({ metric }) => metric);
      expect(shown).toEqual(expect.arrayContaining(alerting.filter((metric) => metric !== WATCHED)));
    },
  );

  it('each legend of the dashboard uses only labels that its query returns', () => {
    for (const { title, targets } of panels) {
      for (const { expr, legendFormat } of targets) {
        const used = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
        const counted = /^count_values\("(\w+)"/.exec(expr)?.[1];
        const returned = [...usesOf(expr).grouped, ...(counted ? [counted] : [])];
        for (const label of used) expect([title, returned]).toEqual([title, expect.arrayContaining([label])]);
      }
    }
  });
});
