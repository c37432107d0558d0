import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const PROJECT = join(import.meta.dirname, '../..');
const EXAMPLE = join(PROJECT, 'examples/lotto-grant');
const read = (path: string): string => readFileSync(join(PROJECT, path), 'utf8');
const page = read('docs/adding-a-grant.md');
const shellBlocks = Array.from(page.matchAll(/^```sh\n(.*?)^```$/gms), ([, text = '']) => text);
const wayA = page.slice(page.indexOf('\n## Way A'), page.indexOf('\n## Way B'));

/** The first column of the tables of a section, without its backticks. */
const messagesAfter = (words: string, next: string): string[] => {
  const section = page.slice(page.indexOf(words), page.indexOf(next));
  return Array.from(section.matchAll(/^\| `([^|]+)` \|/gm), ([, message = '']) => message);
};

/** The compiler errors of the grants that contradict their declarations, without `@ts-expect-error`. */
function compilerErrors(): string {
  const file = join(PROJECT, 'test/e2e/faulty-grant.e2e-spec.ts');
  const config = ts.readConfigFile(join(PROJECT, 'tsconfig.json'), ts.sys.readFile).config;
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, PROJECT);
  const host = ts.createCompilerHost(options);
  const readFile = host.readFile;
  host.readFile = (path) => {
    const text = readFile(path);
    return path.endsWith('faulty-grant.e2e-spec.ts') ? text?.replaceAll('@ts-expect-error', '') : text;
  };
  const program = ts.createProgram([file], { ...options, noEmit: true }, host);
  const diagnostics = program.getSemanticDiagnostics(program.getSourceFile(file));
  return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')).join('\n');
}

describe('the tutorial (docs/adding-a-grant.md)', () => {
  it('names only scripts that exist', () => {
    const scripts = ['', 'examples/lotto-grant/'].flatMap((folder) =>
      Object.keys(JSON.parse(read(`${folder}package.json`)).scripts),
    );
    const named = Array.from(page.matchAll(/npm run (?:-s )?([\w:-]+)/g), ([, name]) => name);
    expect(named.length).toBeGreaterThan(3);
    for (const name of named) expect(scripts).toContain(name);
  });

  it('links only to pages and headings that exist', () => {
    const anchors = Array.from(page.matchAll(/^#+ (.+)$/gm), ([, title = '']) =>
      title
        .toLowerCase()
        .replaceAll(/[^\w -]/g, '')
        .replaceAll(' ', '-'),
    );
    for (const [, target = ''] of page.matchAll(/\]\(([^)]+)\)/g)) {
      if (target.startsWith('#')) expect(anchors).toContain(target.slice(1));
      else expect(readdirSync(join(PROJECT, 'docs', target, '..'))).toContain(target.split('/').at(-1));
    }
  });

  it('requests the generated grant with a client that its registry allows', () => {
    const [, registry = ''] = /<<'END'\n(.*?)\nEND\n/s.exec(wayA) ?? [];
    const [, requestBody = ''] = /-d '(\{.*\})'/.exec(wayA) ?? [];
    const [client] = parse(registry).clients;
    const { grant_type, client_id, organization_id, ...own } = JSON.parse(requestBody);
    expect({ client_id, organization_id, grants: { [grant_type]: own } }).toEqual({
      client_id: client.client_id,
      organization_id: client.organization_id,
      grants: client.grants,
    });
    const [, rule = ''] = /@Matches\(\/(.*)\//.exec(read('scripts/new-grant/settings.ts.txt')) ?? [];
    expect(own.code).toMatch(new RegExp(rule));
  });

  it('renames all files of the example and their contents', () => {
    const folder = mkdtempSync(join(tmpdir(), 'renamed-'));
    try {
      for (const part of readdirSync(EXAMPLE).filter((name) => !['node_modules', 'dist', 'var'].includes(name)))
        cpSync(join(EXAMPLE, part), join(folder, part), { recursive: true });
      const commands = shellBlocks.find((text) => text.startsWith('NAME=sms\n')) ?? 'exit 1';
      execFileSync('bash', ['-euo', 'pipefail', '-c', commands], { cwd: folder });
      const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
      for (const { parentPath, name } of files) {
        const text = `${name}\n${readFileSync(join(parentPath, name), 'utf8')}`;
        expect(text).not.toMatch(/lotto|1795300000000/i);
      }
      expect(readFileSync(join(folder, 'src/sms.grant.ts'), 'utf8')).toContain("@GrantType('sms', { body: SmsBody,");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('lists the errors of the compiler', () => {
    const errors = compilerErrors();
    const messages = messagesAfter('### Compiler errors', '### Start-up errors');
    expect(messages).toHaveLength(7);
    for (const message of messages) expect(errors.split('\n').map((line) => line.trim())).toContain(message);
  }, 180_000); // the compiler runs

  it('lists the errors of the start and of the test kit that tests check', () => {
    const tests = ['e2e/faulty-grant.e2e-spec', 'e2e/faulty-table.e2e-spec', 'e2e/conformance-kit.e2e-spec'];
    const testedText = [...tests, 'unit/grant-registry.spec'].map((name) => read(`test/${name}.ts`)).join('\n');
    const messages = messagesAfter('### Start-up errors', '### Errors of NestJS');
    expect(messages.length).toBeGreaterThan(10);
    for (const message of messages) expect(testedText).toContain(message.replace(/ name its module in …$/, ''));
  });

  it('shows a failure of a rule that exists', () => {
    const [, title = ''] = /^FAIL {2}… (.+)$/m.exec(page) ?? [];
    expect(read('src/testing/rules/secrets.ts')).toContain(`title: '${title}'`);
  });
});
