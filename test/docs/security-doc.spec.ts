import { describe, expect, it } from 'vitest';
import { read } from '../support/project-files.js';
import { itNamesOnlyTestsThatExist, testReferencesIn } from './test-titles.js';

const PAGES = ['docs/security.md', 'docs/security-compliance.md'];
const pages = PAGES.map(read).join('\n');
const rows = pages.split('\n').filter((line) => line.startsWith('| '));

const references = testReferencesIn(pages);

describe('docs/security.md and docs/security-compliance.md', () => {
  itNamesOnlyTestsThatExist(references);

  it('name tests only in the form that this test reads', () => {
    expect(pages.split('›').length - 1).toBe(references.length);
  });

  it('name a test in each row that says met', () => {
    const met = rows.filter((row) => row.split(' | ').includes('met'));
    expect(met.length).toBeGreaterThan(50);
    expect(met.filter((row) => !row.includes(' › '))).toEqual([]);
  });
});
