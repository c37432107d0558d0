import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { testReferencesIn, titlesOf } from './test-titles.js';

const PROJECT = join(import.meta.dirname, '../..');
const PAGES = ['docs/security.md', 'docs/security-compliance.md'];
const pages = PAGES.map((path) => readFileSync(join(PROJECT, path), 'utf8')).join('\n');
const rows = pages.split('\n').filter((line) => line.startsWith('| '));

const references = testReferencesIn(pages);

describe('docs/security.md and docs/security-compliance.md', () => {
  const names = [...new Set(references.map(({ name }) => name))].sort();

  it.each(names)('name only tests that exist in %s', (name) => {
    const titles = titlesOf(name);
    const named = references.filter((reference) => reference.name === name).map(({ title }) => title);
    expect(named.filter((title) => !titles.has(title))).toEqual([]);
  });

  it('name tests only in the form that this test reads', () => {
    expect(pages.split('›').length - 1).toBe(references.length);
  });

  it('name a test in each row that says met', () => {
    const met = rows.filter((row) => row.split(' | ').includes('met'));
    expect(met.length).toBeGreaterThan(50);
    expect(met.filter((row) => !row.includes(' › '))).toEqual([]);
  });
});
