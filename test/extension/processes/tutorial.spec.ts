import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { PROJECT, read, temporaryFolder } from '../../support/project-files.js';

const page = read('docs/adding-a-grant.md');
const errorsPage = read('docs/grant-errors.md');
const routePage = read('docs/adding-a-route.md');

/** The first column of the tables of a section of the page of errors, without its backticks. */
const messagesAfter = (words: string, next: string): string[] => {
  const section = errorsPage.slice(errorsPage.indexOf(words), errorsPage.indexOf(next));
  return Array.from(section.matchAll(/^\| `([^|]+)` \|/gm), ([, message = '']) => message);
};

/** The compiler errors of the grants that contradict their declarations, without `@ts-expect-error`. */
function compilerErrors(): string {
  const file = join(PROJECT, 'test/extension/isolated/faulty-grant.e2e-spec.ts');
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

const BROKEN_ROUTES = 'packages/conformance-kit/test/support/broken-routes/broken-routes.ts';
const BROKEN_GRANTS = 'packages/conformance-kit/test/support/broken-grants/broken-grants.ts';

describe('the tutorial (docs/adding-a-grant.md)', () => {
  const folder = temporaryFolder('generated');

  it('names only scripts that exist', () => {
    const scripts = ['', 'examples/lotto-grant/'].flatMap((folder) =>
      Object.keys(JSON.parse(read(`${folder}package.json`)).scripts),
    );
    const named = Array.from(`${page}${routePage}`.matchAll(/npm run (?:-s )?([\w:-]+)/g), ([, name]) => name);
    expect(named.length).toBeGreaterThan(0);
    for (const name of named) expect(scripts).toContain(name);
  });

  it('shows the names of limits that the example declares', () => {
    const [, limits = ''] = /SMS_LIMITS = (.*);/.exec(read('test/support/sms-extension.ts')) ?? [];
    expect(limits).not.toBe('');
    expect(page).toContain(`\`${limits}\``);
  });

  it('shows a program of the package, and requests the generated grant with a client that its registry allows', () => {
    expect(page).toContain('npx customer-authorization-service new-package "sms code"');
    const { bin, name } = JSON.parse(read('package.json'));
    execFileSync(join(PROJECT, bin[name]), ['new-package', 'sms code'], { cwd: folder });
    const [, requestBody = ''] = /-d '(\{.*\})'/.exec(page) ?? [];
    const [client] = parse(readFileSync(join(folder, 'sms-code/registry.yaml'), 'utf8')).clients;
    const { grant_type, client_id, organization_id, code } = JSON.parse(requestBody);
    expect(client).toMatchObject({ client_id, organization_id });
    expect(code.startsWith(client.grants[grant_type].code_prefix)).toBe(true);
    expect(readFileSync(join(folder, 'sms-code/README.md'), 'utf8')).toContain(requestBody);
  });

  it('lists the errors of the compiler', () => {
    const errors = compilerErrors();
    const messages = messagesAfter('## Compiler errors', '## Start-up errors');
    expect(messages).toHaveLength(7);
    for (const message of messages) expect(errors.split('\n').map((line) => line.trim())).toContain(message);
  }, 180_000); // the compiler runs

  it('lists the errors of the start and of the test kit that tests check', () => {
    const tests = [
      'extension/isolated/faulty-grant',
      'extension/isolated/both-databases/missing-table',
      'extension/faulty-routes',
      'extension/extension-audit',
      'limits/grant-attempts',
      'limits/extension-limits',
    ].map((name) => `test/${name}.e2e-spec.ts`);
    const ofKit = ['grants', 'routes'].map((name) => `packages/conformance-kit/test/isolated/${name}.e2e-spec.ts`);
    const texts = [...tests, ...ofKit, BROKEN_ROUTES, BROKEN_GRANTS].map(read);
    const testedText = texts.join('\n').replaceAll(/\\(['/.?])/g, '$1');
    const messages = messagesAfter('## Start-up errors', '## Errors of NestJS');
    expect(messages.length).toBeGreaterThan(10);
    const nameOfController = /^\w+Controller(\.\w+)?( and \w+Controller\.\w+)?: /;
    for (const message of messages)
      for (const part of message.replace(nameOfController, '').split('…'))
        expect(testedText).toContain(part.replaceAll(/^[` ]+|[` ]+$/g, ''));
  });

  it('shows a failure of a rule that exists', () => {
    const [, title = ''] = /^FAIL {2}… (.+)$/m.exec(page) ?? [];
    expect(read('packages/conformance-kit/src/rules/secrets.ts')).toContain(`title: '${title}'`);
  });
});
