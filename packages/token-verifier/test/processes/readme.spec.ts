import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestIssuer } from '../support/test-issuer.js';

const PACKAGE = join(import.meta.dirname, '../..');
const PROJECT = join(PACKAGE, '../..');
const page = readFileSync(join(PACKAGE, 'README.md'), 'utf8');
const blocks = new Map(
  Array.from(page.matchAll(/^```ts ([\w-]+\.ts)\n(.*?)^```$/gms), ([, name = '', text = '']) => [name, text]),
);

/** Calls what the blocks define, and prints the results. */
const HARNESS = `
import { once } from 'node:events';
import { NestFactory } from '@nestjs/core';
import { Module } from '@nestjs/common';
import { requireToken } from '@customer-authorization/token-verifier/express';
import { server } from './express.js';
import { claimsOf } from './issuers.js';
import { MeController } from './nestjs.js';
import { TokenErrorFilter } from './nestjs-filter.js';
import { entries, problem, revocations, syncedAt } from './state.js';
import { customerOf } from './verifier.js';

@Module({ controllers: [MeController] })
class ReadmeModule {}
const nest = await NestFactory.create(ReadmeModule, { logger: false });
nest.useGlobalFilters(new TokenErrorFilter());
await nest.listen(0, '127.0.0.1');
if (!server.listening) await once(server, 'listening');
const bodyOf = async (port: number, token: string) => {
  const response = await fetch(\`http://127.0.0.1:\${port}/me\`, { headers: { Authorization: \`Bearer \${token}\` } });
  return [response.status, response.status === 200 ? await response.json() : response.headers.get('WWW-Authenticate')];
};
const token = process.env.TOKEN ?? '';
const ports = [server.address(), nest.getHttpServer().address()].map((address) => (address as { port: number }).port);
const adapters = [];
for (const port of ports) adapters.push(await bodyOf(port, token), await bodyOf(port, 'x'));
const chosenOf = (text: string) => claimsOf(text).then(({ sub }) => sub, ({ code }) => code);
const chosen = await Promise.all([token, process.env.FOREIGN ?? '', process.env.FORGED ?? '', 'x'].map(chosenOf));
const request: Parameters<ReturnType<typeof requireToken>>[0] = { headers: { authorization: \`Bearer \${token}\` } };
await requireToken({ verify: claimsOf })(request, undefined, () => {});
const results = { chosen, chosenByAdapter: request.auth?.sub, customer: await customerOf(token), rejected: await customerOf('x'), adapters, revocations, problem, entries, syncedAt };
process.stdout.write(JSON.stringify(results));
await nest.close();
process.kill(process.pid, 'SIGTERM');
`;

let issuer: TestIssuer;
/** Outside the project, which other tests copy and check meanwhile. */
const folder = mkdtempSync(join(tmpdir(), 'readme-'));
const main = join(folder, 'main.ts');
beforeAll(async () => {
  issuer = await TestIssuer.start();
  symlinkSync(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  const config = { extends: join(PROJECT, 'tsconfig.json'), include: ['*.ts'], exclude: [] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  for (const [name, text] of [...blocks, ['main.ts', HARNESS] as const]) {
    const urls = /https:\/\/auth(-internal)?\.example/g;
    writeFileSync(join(folder, name), text.replaceAll(urls, issuer.url));
  }
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await issuer?.stop();
});

/** Tokens of another issuer: one with its own name, and one with the name of the issuer that the API admits. */
async function foreignTokens(): Promise<{ FOREIGN: string; FORGED: string }> {
  const other = await TestIssuer.start();
  await other.addKey('foreign');
  const claims = other.claims(Date.now());
  const [FOREIGN, FORGED] = await Promise.all([claims, { ...claims, iss: issuer.url }].map((each) => other.sign(each)));
  await other.stop();
  return { FOREIGN: FOREIGN as string, FORGED: FORGED as string };
}

describe('the code in the README', () => {
  it('compiles, each block as a file of its own', () => {
    const config = ts.readConfigFile(join(PROJECT, 'tsconfig.json'), ts.sys.readFile).config;
    const { options } = ts.parseJsonConfigFileContent(config, ts.sys, PROJECT);
    const files = [...blocks.keys()].map((name) => join(folder, name));
    const program = ts.createProgram([...files, main], { ...options, noEmit: true });
    const diagnostics = [...files, main].flatMap((file) => program.getSemanticDiagnostics(program.getSourceFile(file)));
    expect(diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))).toEqual([]);
  });

  it('verifies tokens in a function, in Express and in NestJS, and ends the process at SIGTERM', async () => {
    issuer.feed.add({ kind: 'token', value: 'other' });
    const env = {
      ...process.env,
      TOKEN: await issuer.token(Date.now(), { user_verified: true }),
      ...(await foreignTokens()),
      RESOURCE_SERVER_SECRET: 'the-secret',
      PORT: '0',
    };
    const run = promisify(execFile)(process.execPath, ['--import', 'tsx', main], { cwd: folder, env });
    const { stdout } = await run;
    const result = stdout.trimEnd().split('\n').at(-1) as string; // after the lines of the audit
    expect(JSON.parse(result)).toEqual({
      chosen: ['customer-1', 'other_issuer', 'keys_unavailable', 'other_issuer'],
      chosenByAdapter: 'customer-1',
      customer: 'customer-1',
      rejected: 401,
      adapters: [
        [200, { customer: 'customer-1', isUser: true }],
        [401, 'Bearer error="invalid_token"'],
        [200, { customer: 'customer-1', isUser: true }],
        [401, 'Bearer error="invalid_token"'],
      ],
      revocations: 'current',
      entries: 1,
      syncedAt: expect.any(String),
    });
  });

  it('is all in these blocks, and the commands name this version', () => {
    expect([...blocks.keys()]).toEqual([
      'verifier.ts',
      'issuers.ts',
      'express.ts',
      'express-types.ts',
      'nestjs.ts',
      'nestjs-filter.ts',
      'state.ts',
    ]);
    const { name, version } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'));
    expect(page).toContain(`./${name.replace('@', '').replace('/', '-')}-${version}.tgz`);
    expect(page.match(/^```\w/gm)?.length).toBe(blocks.size + 1);
  });
});

describe('the tables of the README', () => {
  const namesIn = (text: string, pattern: RegExp) => Array.from(text.matchAll(pattern), ([, name]) => name).sort();
  const section = (heading: string) => page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';

  it('list each error code', () => {
    const source = readFileSync(join(PACKAGE, 'src/errors.ts'), 'utf8');
    expect(namesIn(section('Errors'), /^\| `(\w+)` \| \d/gm)).toEqual(namesIn(source, /^ {2}(\w+): \[\d/gm));
  });

  it('list each option', () => {
    const source =
      readFileSync(join(PACKAGE, 'src/options.ts'), 'utf8').split('/** Options that are complete')[0] ?? '';
    const options = namesIn(source, /^ {2}(\w+)\??:/gm).filter((name) => name !== 'revocations');
    expect(namesIn(section('Options'), /`(?:revocations\.)?(\w+)`(?:, | \| (?:yes|no))/g)).toEqual(options);
  });
});
