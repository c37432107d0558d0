import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import {
  parseInPortions,
  parseYaml,
  type RegistryFileError,
  yamlPortions,
} from '../../src/registry/file/yaml-document.js';

const WORKER = new URL('../../dist/registry/file/yaml-worker.js', import.meta.url);

function violationsOf(text: string): string[] {
  try {
    parseYaml(text);
    return [];
  } catch (error) {
    return (error as RegistryFileError).violations;
  }
}

/** The document that the portions of a text give together. */
function joined(text: string): object {
  const document: Record<string, unknown> = {};
  for (const part of parseInPortions(text)) {
    for (const [name, value] of Object.entries(part)) {
      const list = document[name];
      document[name] = Array.isArray(list) && Array.isArray(value) ? [...list, ...value] : value;
    }
  }
  return document;
}

const clients = (count: number, more = '') =>
  Array.from({ length: count }, (_, index) => `  - client_id: c${index}\n    scopes: [a, b]\n${more}`).join('');

describe('the portions of a registry file', () => {
  it.each([
    ['more items than one portion has', `revision: 3\nclients:\n${clients(450)}organizations:\n  - id: a\n`],
    ['lists without indentation', 'clients:\n- client_id: a\n  scopes:\n  - one\n  - two\n- client_id: b\n'],
    ['comments, empty lines and line ends of Windows', '# a\r\nclients: # b\r\n\r\n  # c\r\n  - client_id: a\r\n'],
    ['empty and missing lists', 'agents: []\nclients:\norganizations:\n  - id: a\n'],
    ['fields over several lines', 'agents: [\n  { email: a }\n  ]\nclients:\n  - { client_id: a,\n      name: b }\n'],
    ['a list that is a mapping', `clients:\n  name:\n${clients(250)}`],
    ['a list in a list', `clients:\n  -\n${clients(250).replaceAll(/^/gm, '  ')}`],
    ['block scalars', 'clients:\n  - name: |\n      - text\n      more\n  - name: b\n'],
    ['an anchor in the same item', 'clients:\n  - scopes: &s [a]\n    origins: *s\n'],
    ['an alias of another portion', `organizations:\n  - &o { id: a }\nclients:\n${clients(250)}  - *o\n`],
    ['quoted names of lists', `clients:\n${clients(200)}"agents":\n${clients(200)}`],
    ['the start of a document', `---\nclients:\n${clients(250)}`],
  ])('give the same document as the whole text: %s', (_, text) => {
    expect(joined(text)).toEqual(parseYaml(text));
  });

  it.each([
    ['a quoted text that contains an item', `clients:\n${clients(199)}  - name: "a\n  - b"\n`, 'line 400: '],
    ['a repeated list', `clients:\n${clients(250)}clients:\n  - client_id: b\n`, 'line 502: DUPLICATE_KEY'],
    ['a first list with indentation', ` clients:\n  - client_id: b\nclients:\n${clients(250)}`, 'line 3: '],
    ['several documents', `clients:\n${clients(250)}---\nclients: []\n`, 'line 502: MULTIPLE_DOCS'],
    ['an end of a document', `clients:\n${clients(250)}...\nagents: []\n`, 'line 503: MULTIPLE_DOCS'],
    ['items with different indentation', `clients:\n${clients(250)} - client_id: c\n`, 'line 502: '],
  ])('are rejected with the line of the whole text: %s', (_, text, violation) => {
    expect(() => parseInPortions(text)).toThrow(violation);
  });

  it('have few items each', () => {
    const texts = yamlPortions(`# comment\nclients:\n${clients(450)}`);
    expect(texts.map((text) => text.match(/^ {2}- /gm)?.length ?? 0)).toEqual([0, 199, 200, 51]);
  });

  it('need less memory than the whole text', async () => {
    const workerData = `clients:\n${clients(10_000, '    redirect_uris:\n      - https://shop.example/\n')}`;
    const worker = new Worker(WORKER, { workerData, resourceLimits: { maxOldGenerationSizeMb: 48 } });
    const [{ parts }] = await once(worker, 'message');
    expect(parts).toHaveLength(51);
    await worker.terminate();
  });
});

const BRACKET_COUNT = 300_000;
const indented = (levels: number) => Array.from({ length: levels }, (_, level) => `${' '.repeat(level)}a:\n`).join('');

describe('a text for which the parser would need much memory or time', () => {
  it.each([
    ['brackets', '['.repeat(BRACKET_COUNT), /line 1: nested deeper/],
    ['brackets in a list', `clients:\n  - ${'['.repeat(BRACKET_COUNT)}`, /line 2: nested deeper/],
    ['closed brackets', `clients: ${'['.repeat(BRACKET_COUNT)}${']'.repeat(BRACKET_COUNT)}`, /line 1: nested deeper/],
    ['braces', '{'.repeat(BRACKET_COUNT), /nested deeper/],
    ['braces with keys', `clients: ${'{a: '.repeat(BRACKET_COUNT)}`, /nested deeper/],
    ['nested JSON', '{"clients":'.repeat(BRACKET_COUNT), /nested deeper/],
    ['lists on one line', `clients:\n  ${'- '.repeat(BRACKET_COUNT)}`, /line 2: nested deeper/],
    ['explicit keys', '? '.repeat(BRACKET_COUNT), /nested deeper/],
    ['keys on one line', `clients: ${'a: '.repeat(BRACKET_COUNT)}`, /nested deeper/],
    ['deep indentation', indented(3_000), /line 64: nested deeper/],
    ['tags', `clients: ${'!!a '.repeat(BRACKET_COUNT)}`, /line 1: too many tags/],
    ['anchors', `clients: ${'&a '.repeat(BRACKET_COUNT)}`, /too many tags/],
    ['tags and comments', 'clients:\n'.padEnd(12 * BRACKET_COUNT, '  !!a # b\n'), /too many tags/],
    ['directives', '%a b\n'.repeat(BRACKET_COUNT), /line 9: too many tags/],
    ['many documents', '---\n'.repeat(BRACKET_COUNT), /line 2: MULTIPLE_DOCS/],
    ['a long key', `${'k'.repeat(BRACKET_COUNT)}: 1`, /KEY_OVER_1024_CHARS/],
    ['an anchor that contains itself', 'clients: &a [*a]', /an alias has no anchor, or expands/],
  ])('is rejected: %s', (_, text, violation) => {
    expect(() => parseInPortions(text)).toThrow(violation);
  });

  it.each([
    ['commas', `[${','.repeat(2_000)}`],
    ['equal keys', 'clients: 1\n'.repeat(2_000)],
  ])('reports some of the errors only: %s', (_, text) => {
    const violations = violationsOf(text);
    expect(violations).toHaveLength(101);
    expect(violations.at(-1)).toMatch(/^and \d+ more errors$/);
  });

  it.each([
    ['comments and empty lines', '# a\n\n'.repeat(BRACKET_COUNT / 10)],
    ['values with brackets', `clients:\n${"  - { name: '[[[[' }\n".repeat(2_000)}`],
    ['some levels', `clients: ${'['.repeat(50)}${']'.repeat(50)}`],
  ])('is accepted if it has only: %s', (_, text) => {
    expect(() => parseInPortions(text)).not.toThrow();
  });
});
