import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { read } from '../support/project-files.js';

const page = read('docs/scaling.md');
const LINKED_FIGURE = /\[(?<figure>[\d,.]+) (?<unit>µs|bytes)\]\((?<file>\w+\.md)#(?<anchor>[\w-]+)\)/g;
/** A row of a table whose second cell is a calculation. */
const CALCULATION = /^\| (?<name>[^|]+) \| (?<calculation>[^|]*[×−+][^|]*) \| (?<result>[\d,.]+)(?<unit>[^|]*) \|$/gm;
const UNITS: Record<string, string> = { million: '*1e6', µs: '*1e-6', bytes: '', '×': '*', '−': '-', ',': '' };
const RESULT_UNITS: Record<string, number> = { GB: 1e9, 'MB/s': 1e6, '/s': 1, '': 1 };

const groupsOf = (pattern: RegExp) => Array.from(page.matchAll(pattern), ({ groups = {} }) => groups);

/** The value of a calculation in the words of the page, such as `10 million / 86,400 × 3`. */
function calculate(text: string): number {
  const figures = text.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1');
  return runInNewContext(figures.replaceAll(/million|µs|bytes|×|−|,/g, (word) => UNITS[word] ?? ''));
}

/** The text of a page below a heading, up to the next heading. */
function sectionOf(file: string, anchor: string): string {
  const sections = read(`docs/${file}`).split(/^(?=##+ )/m);
  const anchorOf = (section: string) =>
    (section.split('\n')[0] ?? '')
      .replace(/^#+ /, '')
      .toLowerCase()
      .replaceAll(/[^\w -]/g, '')
      .replaceAll(' ', '-');
  return sections.find((section) => anchorOf(section) === anchor) ?? '';
}

describe('docs/scaling.md', () => {
  it('has a source for processor time and bytes', () => {
    expect(groupsOf(LINKED_FIGURE).length).toBeGreaterThanOrEqual(10);
  });

  it.each(groupsOf(LINKED_FIGURE))('takes $figure $unit from $file#$anchor', ({ figure, file = '', anchor = '' }) => {
    const numbers = sectionOf(file, anchor).match(/\d[\d,]*(?:\.\d+)?/g);
    expect(numbers).toContain(figure);
  });

  it.each(groupsOf(CALCULATION))('calculates $name', ({ calculation = '', result = '', unit = '' }) => {
    const value = calculate(calculation) / (RESULT_UNITS[unit.trim()] ?? Number.NaN);
    expect(value.toFixed(result.split('.')[1]?.length ?? 0)).toBe(result.replaceAll(',', ''));
  });

  it('has a calculation for each kind of need', () => {
    expect(groupsOf(CALCULATION).length).toBeGreaterThanOrEqual(15);
  });
});
