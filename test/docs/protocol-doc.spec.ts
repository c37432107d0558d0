import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { PROJECT, read } from '../support/project-files.js';
import { itNamesOnlyTestsThatExist } from './test-titles.js';

/** An entry of protocol-rules.yaml. `tests` has the titles of each test file, such as `transfer/races`. */
interface Rules {
  sections: string[];
  files: string[];
  tests: Record<string, string[]>;
}

const PAGE = 'docs/protocol.md';
const FOLDERS = ['src', 'test', 'docs', 'bench', 'examples', 'packages', 'scripts'];
const TEXT_FILE = /\.(ts|js|mjs|cjs|md|yaml|yml|json|eta|sh)$/;
const GENERATED_FOLDER = /(^|\/)(node_modules|dist)\//;

const SECTION = String.raw`§\d+(?:\.\d+)*`;
/** A line break and the start of a comment line may separate `protocol` from its section. */
const CITATION = new RegExp(String.raw`\bprotocol[\s*/]+${SECTION}(?:(?:, | and | to )${SECTION})*`, 'gi');
/** A section of the page itself. A section of an RFC has the number of the RFC before it. */
const OWN_SECTION = new RegExp(String.raw`(?<!RFC \d+ )${SECTION}`, 'g');

const page = read(PAGE);

const sections = Array.from(page.matchAll(/^#{2,3} (\d+(?:\.\d+)?) /gm), ([, number = '']) => number);
const numbers = new Set(sections);

function numbersIn(text: string): string[] {
  return Array.from(text.matchAll(new RegExp(SECTION, 'g')), ([section]) => section.slice(1));
}

function citationsIn(path: string): string[] {
  const text = read(path);
  const cited = path === PAGE ? text.match(OWN_SECTION) : text.match(CITATION);
  return (cited ?? []).flatMap(numbersIn);
}

const files = FOLDERS.flatMap((folder) =>
  readdirSync(join(PROJECT, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
).filter((path) => TEXT_FILE.test(path) && !GENERATED_FOLDER.test(path) && statSync(join(PROJECT, path)).isFile());

const rules: Rules[] = parse(read('test/docs/protocol-rules.yaml'));
const references = rules.flatMap(({ tests }) =>
  Object.entries(tests).flatMap(([name, titles]) => titles.map((title) => ({ name, title }))),
);

describe('docs/protocol.md', () => {
  it('has at most 100,000 characters', () => {
    expect([...page].length).toBeLessThanOrEqual(100_000);
  });

  it('has consecutive section numbers', () => {
    const expected: string[] = [];
    for (const number of numbers) {
      const [chapter = 0, part] = number.split('.').map(Number);
      const [lastChapter = 0, lastPart = 0] = (expected.at(-1) ?? '0').split('.').map(Number);
      expected.push(
        part === undefined ? `${lastChapter + 1}` : `${chapter}.${chapter === lastChapter ? lastPart + 1 : 1}`,
      );
    }
    expect([...numbers]).toEqual(expected);
    expect(numbers.size).toBe(sections.length);
    expect(sections.length).toBeGreaterThan(80);
  });

  it('has a section for each citation in the project', () => {
    const cited = files.flatMap((path) => citationsIn(path).map((number) => ({ path, number })));
    expect(cited.length).toBeGreaterThan(200);
    expect(cited.filter(({ number }) => !numbers.has(number))).toEqual([]);
  });

  it('says where each rule is implemented, except for the introduction', () => {
    const chapters = new Set(sections.flatMap((number) => (number.includes('.') ? [number.split('.')[0]] : [])));
    const expected = sections.filter((number) => !chapters.has(number) && !/^1\.[1-4]$/.test(number));
    const named = rules.flatMap((entry) => entry.sections);
    expect(named.sort()).toEqual(expected.sort());
  });

  it.each(rules)('names a file that exists and a test for the rules of $sections', ({ files: implementing, tests }) => {
    expect(implementing.length).toBeGreaterThan(0);
    expect(implementing.filter((path) => !existsSync(join(PROJECT, path)))).toEqual([]);
    expect(Object.values(tests).flat().length).toBeGreaterThan(0);
  });

  itNamesOnlyTestsThatExist(references);
});
