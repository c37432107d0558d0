import { describe, expect, it } from 'vitest';
import { parseYaml, type RegistryFileError } from '../../src/operator/registry/file/yaml-document.js';

function violationsOf(text: string): string[] {
  try {
    parseYaml(text);
    return [];
  } catch (error) {
    return (error as RegistryFileError).violations;
  }
}

const clients = (count: number) =>
  Array.from({ length: count }, (_, index) => `  - client_id: c${index}\n    scopes: [a, b]\n`).join('');

describe('a registry file', () => {
  it.each([
    ['a quoted text that contains an item', `clients:\n${clients(199)}  - name: "a\n  - b"\n`, 'line 400: '],
    ['a repeated list', `clients:\n${clients(250)}clients:\n  - client_id: b\n`, 'line 502: DUPLICATE_KEY'],
    ['a first list with indentation', ` clients:\n  - client_id: b\nclients:\n${clients(250)}`, 'line 3: '],
    ['several documents', `clients:\n${clients(250)}---\nclients: []\n`, 'line 502: MULTIPLE_DOCS'],
    ['an end of a document', `clients:\n${clients(250)}...\nagents: []\n`, 'line 503: MULTIPLE_DOCS'],
    ['items with different indentation', `clients:\n${clients(250)} - client_id: c\n`, 'line 502: '],
  ])('is rejected with the line of %s', (_, text, violation) => {
    expect(() => parseYaml(text)).toThrow(violation);
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
    ['commas', `clients: [${','.repeat(BRACKET_COUNT)}`, /line 1: too many tags/],
    ['more than 8 MB', `clients: []\n${'# a\n'.repeat(2_100_000)}`, /longer than 8 MB/],
    ['no text', ' \n', /the file is empty/],
    ['a long key', `${'k'.repeat(BRACKET_COUNT)}: 1`, /KEY_OVER_1024_CHARS/],
    ['an anchor that contains itself', 'clients: &a [*a]', /an alias has no anchor, or expands/],
  ])('is rejected: %s', (_, text, violation) => {
    expect(() => parseYaml(text)).toThrow(violation);
  });

  it.each([
    ['colons', `[${': '.repeat(2_000)}`],
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
    expect(() => parseYaml(text)).not.toThrow();
  });
});
