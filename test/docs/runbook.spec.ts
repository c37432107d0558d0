import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { alertRules, type Document } from '../support/manifests.js';
import { PROJECT, read } from '../support/project-files.js';

const [, runbook = ''] = read('docs/operations.md').split('\n## Runbook\n');
const sections = new Map(
  runbook.split('\n### ').map((section) => {
    const [heading = ''] = section.split('\n');
    return [heading.toLowerCase().replaceAll(' ', '-').replaceAll("'", ''), section];
  }),
);
const anchorOf = ({ annotations }: Document): string => annotations.runbook_url.split('#')[1];
const anchors = new Set(alertRules.map(anchorOf));

const commandsOf = (section: string) =>
  Array.from(section.matchAll(/^```sh.*\n(.*?)^```$/gms), ([, commands = '']) => commands);

describe('the runbook', () => {
  it.each([...anchors])('has commands that find the cause: %s', (anchor) => {
    expect(commandsOf(sections.get(anchor) ?? '')).not.toHaveLength(0);
  });

  it.each(alertRules.map((rule) => [rule.alert, rule] as const))(
    'names the alert %s with its severity, its minutes and its condition, and no other alert',
    (name, rule) => {
      const minutes = rule.for === undefined ? '' : `, ${rule.for.replace('m', ' min')}`;
      const line = `**Alert** \`${name}\` (${rule.labels.severity}${minutes}): ${rule.annotations.summary}`;
      const paragraphs = (sections.get(anchorOf(rule)) ?? '').split('\n\n');
      expect(paragraphs.map((paragraph) => paragraph.replaceAll('\n', ' '))).toContain(line);
      expect(runbook.split('**Alert** ')).toHaveLength(alertRules.length + 1);
    },
  );

  it('has only commands that Bash can parse', () => {
    for (const commands of commandsOf(runbook)) execFileSync('bash', ['-n'], { input: commands });
  });

  it('searches the log only for texts that the service writes', () => {
    const texts = Array.from(runbook.matchAll(/service_logs \| grep -F '([^'"]+)'/g), ([, text = '']) => text);
    const sources = readdirSync(join(PROJECT, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => read(join('src', name)))
      .join('\n');
    expect(texts.length).toBeGreaterThan(5);
    for (const text of texts) expect(sources).toContain(text);
  });
});
