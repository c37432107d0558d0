import { describe, expect, it } from 'vitest';
import { read } from '../support/project-files.js';
import { itNamesOnlyTestsThatExist, testReferencesIn } from './test-titles.js';

const page = read('docs/security-compliance.md');
const rows = page.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| clauses |'));
const statusOf = (row: string) => row.split(' | ').find((cell) => /^(met|not met|not applicable)$/.test(cell));

describe('docs/security-compliance.md', () => {
  itNamesOnlyTestsThatExist(testReferencesIn(rows.join('\n')));

  it('has one status in each row, and one test in each row that says met and in no other', () => {
    expect(rows.length).toBeGreaterThan(80);
    expect(rows.filter((row) => statusOf(row) === undefined)).toEqual([]);
    for (const row of rows) expect(testReferencesIn(row), row).toHaveLength(statusOf(row) === 'met' ? 1 : 0);
  });
});

describe.each([
  { path: 'docs/security.md', mostWords: 3_500 },
  { path: 'docs/security-compliance.md', mostWords: 3_000 },
])('$path', ({ path, mostWords }) => {
  it(`has at most ${mostWords.toLocaleString('en')} words`, () => {
    expect(read(path).split(/\s+/).filter(Boolean).length).toBeLessThanOrEqual(mostWords);
  });
});
