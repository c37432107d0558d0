import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, errorText, RequestError } from '@customer-authorization/browser-client';
import { describe, expect, it } from 'vitest';
import { DEMO } from '../../packages/try-it/src/demo-registry.js';
import { PROJECT, read } from '../support/project-files.js';

const GUIDES = readdirSync(join(PROJECT, 'docs/integrating')).map((name) => `docs/integrating/${name}`);
const ASSISTANT = 'docs/llms.txt';
const protocol = read('docs/protocol.md');

/** The codes and statuses of a table with the columns that `row` matches. */
function codesIn(text: string, row: RegExp): Set<string> {
  return new Set(
    Array.from(text.matchAll(row), (match) => match.groups as Record<string, string>).flatMap(({ error, status }) =>
      (status ?? '').split(', ').map((each) => `${each} ${error}`),
    ),
  );
}

const definedCodes = codesIn(
  protocol.slice(protocol.indexOf('### 2.12'), protocol.indexOf('### 2.13')),
  /^\| `(?<error>\w+)` \| (?<status>\d{3}(?:, \d{3})*)/gm,
);
const CODE_ROW = /^\| (?<status>\d{3}(?:, \d{3})*) \| `(?<error>\w+)` \|/gm;

/** The routes that a page names, without placeholders. */
const routesIn = (text: string) =>
  Array.from(text.matchAll(/`?(?:GET|POST|DELETE) (\/[\w./-]*)/g), ([, route = '']) => route.replace(/\/$/, ''));

describe('the pages for callers (docs/integrating and docs/llms.txt)', () => {
  it.each([...GUIDES, ASSISTANT])('%s names only routes that the protocol defines', (page) => {
    for (const route of routesIn(read(page))) expect(protocol).toContain(route);
  });

  it.each([...GUIDES, ASSISTANT])('%s names only error codes that the protocol defines, with their status', (page) => {
    for (const code of codesIn(read(page), CODE_ROW)) expect(definedCodes).toContain(code);
  });

  it('backend.md has at most 3,000 words, and at most 400 on its first screen', () => {
    const wordCount = (text: string) => text.split(/\s+/).filter(Boolean).length;
    const text = read('docs/integrating/backend.md');
    expect(wordCount(text)).toBeLessThanOrEqual(3_000);
    const [firstScreen = ''] = text.split('\n## Your own backend\n');
    expect(wordCount(firstScreen)).toBeLessThanOrEqual(400);
  });

  it('errors-and-retries.md lists every code that callers may get', () => {
    const listed = codesIn(read('docs/integrating/errors-and-retries.md'), CODE_ROW);
    const forOperators = ['409 conflict', '412 precondition_failed'];
    expect(new Set([...listed, ...forOperators])).toEqual(definedCodes);
  });

  it('llms.txt has the ids of the demo registry', () => {
    const text = read(ASSISTANT);
    for (const id of Object.values(DEMO)) expect(text).toContain(id);
  });

  it('llms.txt lists every error code of the package token-verifier, with its status', () => {
    const [, codes = ''] = /\n### With token-verifier\n(.*?)\n### /s.exec(read(ASSISTANT)) ?? [];
    for (const [, code, status] of read('packages/token-verifier/src/errors.ts').matchAll(/^ {2}(\w+): \[(\d+)/gm)) {
      const [, listed = ''] = new RegExp(`- Codes with ${status}:(.*?)\\.\n`, 's').exec(codes) ?? [];
      expect(listed).toContain(`\`${code}\``);
    }
  });

  it('second-device.md shows the user the texts of errorText, and no other ones', () => {
    const textsOf = (error = '') =>
      [undefined, 60].map((retryAfterSeconds) =>
        errorText(new RequestError({ status: 503, error, retryAfterSeconds })),
      );
    const [, table = ''] = /\| message to the user \|(.*?)\n\n/s.exec(read('docs/integrating/second-device.md')) ?? [];
    const rows = Array.from(table.matchAll(/^\| (`.*?) \|.*\| (.*?) \|$/gm), ([, codes = '', message = '']) => ({
      codes: Array.from(codes.matchAll(/`(\w+)`/g), ([, code]) => code),
      texts: Array.from(message.matchAll(/"(.*?)"/g), ([, text]) => text),
      isNone: message === 'none',
    })).filter(({ texts, isNone }) => isNone || texts.length > 0);
    expect(rows.length).toBeGreaterThan(10);
    for (const { codes, texts } of rows)
      for (const code of codes) expect(new Set(textsOf(code)), code).toEqual(new Set(texts.length > 0 ? texts : ['']));
  });

  it('second-device.md has a challenge with the code that codeOf returns', () => {
    const [, challenge = '', code] =
      /`([\w-]{43})`\s+has\s+the\s+code\s+`([\d ]{14})`/.exec(read('docs/integrating/second-device.md')) ?? [];
    expect(codeOf(challenge)).toBe(code);
  });
});
