import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { findProgram } from '../../../scripts/debian-packages.js';
import { ALERT_SERIES, type AlertSeries, type Series } from '../../support/alert-series.js';
import { type Document, documentOfKind } from '../../support/manifests.js';

const promtool = findProgram(['promtool']);
const { groups } = documentOfKind('PrometheusRule').spec;
const rules: Document[] = groups
  .flatMap((group: Document) => group.rules)
  .filter(({ alert }: Document) => alert !== undefined);
const PRODUCTION = { job: 'customer-authorization', namespace: 'customer-authorization' };
const STAGING = { ...PRODUCTION, namespace: 'customer-authorization-staging' };
/** Later than the longest `for` and the longest range of the rules together. */
const EVALUATED_AT = '30m';

/** A sample as Prometheus stores it, with the labels that Prometheus adds. */
function withLabels([metric, labels, values]: Series, added: Record<string, string>) {
  const pairs = Object.entries({ ...labels, ...added }).map(([name, value]) => `${name}="${value}"`);
  return { series: `${metric}{${pairs.join(',')}}`, values };
}

/** A test of one alert for promtool: whether the series make it fire. */
function testOf(alert: string, series: Series[], added: Record<string, string>, firing: AlertSeries | undefined) {
  const rule = rules.find((each) => each.alert === alert) as Document;
  const exp_alerts = firing
    ? [{ exp_labels: { ...rule.labels, ...PRODUCTION, ...firing.labels }, exp_annotations: rule.annotations }]
    : [];
  return {
    interval: '1m',
    input_series: series.map((each) => withLabels(each, added)),
    alert_rule_test: [{ eval_time: EVALUATED_AT, alertname: alert, exp_alerts }],
  };
}

describe('the alerts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'alerts-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'rules.yaml'), stringify({ groups }));

  /** Runs tests with promtool. Throws its output if an alert fires that should not, or does not fire. */
  function run(...tests: object[]): void {
    const file = { rule_files: ['rules.yaml'], evaluation_interval: '1m', tests };
    writeFileSync(join(folder, 'test.yaml'), stringify(file, { aliasDuplicateObjects: false }));
    execFileSync(promtool ?? '', ['test', 'rules', 'test.yaml'], { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
  }

  it('name the job and the namespace in one place, which every alert uses', () => {
    const text = stringify(groups);
    expect(text.match(/namespace: |namespace[=!]/g)).toHaveLength(1);
    expect(text.match(/job: |job[=!]/g)).toHaveLength(1);
    for (const { expr } of rules) expect(expr).toContain('customer_authorization:watched');
  });

  it('each have series that make them fire and series that do not', () => {
    expect(Object.keys(ALERT_SERIES).sort()).toEqual(rules.map(({ alert }) => alert).sort());
  });

  describe.skipIf(promtool === undefined)('in promtool (skipped without the program promtool)', () => {
    it.each(Object.entries(ALERT_SERIES))('%s fires for its series', (alert, cases) => {
      run(...cases.fires.map((series) => testOf(alert, series, cases.added ?? PRODUCTION, cases)));
    });

    it.each(Object.entries(ALERT_SERIES))('%s does not fire for normal operation', (alert, cases) => {
      run(...cases.quiet.map((series) => testOf(alert, series, PRODUCTION, undefined)));
    });

    it.each(Object.entries(ALERT_SERIES).filter(([, { added }]) => added === undefined))(
      '%s does not fire for the same series of staging',
      (alert, cases) => run(...cases.fires.map((series) => testOf(alert, series, STAGING, undefined))),
    );
  });
});
