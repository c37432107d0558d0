import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { findProgram } from '../../scripts/programs.js';
import { documentOfKind } from './manifests.js';
import { temporaryFolder } from './project-files.js';

export const promtool = findProgram(['promtool']);

/** The groups of rules of the manifests. */
export const { groups } = documentOfKind('PrometheusRule').spec;

/** A metric with its labels, and its values in the notation of promtool. */
export type Series = [metric: string, labels: Record<string, string>, values: string];

/** A series as promtool reads it. */
export function inputSeries([metric, labels, values]: Series) {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return { series: `${metric}{${pairs.join(',')}}`, values };
}

/** Runs tests of the alerts. Throws the output of promtool if an alert fires that should not, or does not fire. */
export function runPromtool(tests: object[], evaluation_interval = '1m'): void {
  const folder = temporaryFolder('alerts');
  writeFileSync(join(folder, 'rules.yaml'), stringify({ groups }));
  const file = { rule_files: ['rules.yaml'], evaluation_interval, tests };
  writeFileSync(join(folder, 'test.yaml'), stringify(file, { aliasDuplicateObjects: false }));
  execFileSync(promtool ?? '', ['test', 'rules', 'test.yaml'], { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
}
