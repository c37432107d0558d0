import { describe, expect, it } from 'vitest';
import { readPage } from '../support/page-blocks.js';

const page = readPage('docs/scaling.md');
const LINKED_FIGURE = /\[(?<figure>[\d,.]+) (?<unit>µs|ms|bytes)\]\((?<file>\w+\.md)#(?<anchor>[\w-]+)\)/g;
const MICROSECONDS: Record<string, number> = { µs: 1, ms: 1_000 };

const toNumber = (text: string) => Number(text.replaceAll(',', ''));
const groupsOf = (pattern: RegExp) => Array.from(page.matchAll(pattern), ({ groups }) => ({ ...groups }));

/** The text of a page below a heading, up to the next heading. */
function sectionOf(file: string, anchor: string): string {
  const sections = readPage(`docs/${file}`).split(/^(?=##+ )/m);
  const anchorOf = (section: string) =>
    (section.split('\n')[0] ?? '')
      .replace(/^#+ /, '')
      .toLowerCase()
      .replaceAll(/[^\w -]/g, '')
      .replaceAll(' ', '-');
  return sections.find((section) => anchorOf(section) === anchor) ?? '';
}

describe('docs/scaling.md', () => {
  const figures = groupsOf(LINKED_FIGURE);

  it('has a source for the processor time, the database and the disk', () => {
    expect(figures.length).toBeGreaterThanOrEqual(5);
  });

  it.each(figures)('takes $figure $unit from $file#$anchor', ({ figure = '', file = '', anchor = '' }) => {
    const numbers = sectionOf(file, anchor).match(/\d[\d,.]*(?<=\d)/g);
    expect(numbers).toContain(figure);
  });

  it.each(groupsOf(/\[(?<cost>[\d.]+) (?<unit>µs|ms)\]\([^)]+\) × (?<rate>[\d,]+)[^|]*\| (?<cores>[\d.]+) cores/g))(
    'needs $cores cores for $rate times $cost $unit',
    ({ cost = '', unit = '', rate = '', cores = '' }) => {
      const exact = (Number(cost) * (MICROSECONDS[unit] ?? Number.NaN) * toNumber(rate)) / 1e6;
      expect(exact.toFixed(cores.includes('.') ? 1 : 0)).toBe(cores);
    },
  );

  it('calculates requests and bytes from the visitors', () => {
    const visitors = 50e6;
    const requests = visitors * 4;
    expect(page).toContain(`${requests / 1e6} million a day`);
    expect(page).toContain(`${Math.round(requests / 86_400).toLocaleString('en-US')}/s`);
    expect(page).toContain(`${Math.round((visitors / 5 / 86_400) * 3)}/s`);
    const [, bytes] = /\[(\d+) bytes\]/.exec(page) ?? [];
    const [, planned] = /plan for (\d+) GB/.exec(page) ?? [];
    expect(Math.abs((300e6 * Number(bytes)) / 1e9 - Number(planned))).toBeLessThan(5);
  });
});
