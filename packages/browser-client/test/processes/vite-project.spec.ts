import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import ts from 'typescript';
import { build, type PreviewServer, preview, type Rolldown } from 'vite';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { launchBrowser } from '../../../../test/support/browser-launch.js';
import { temporaryFolder } from '../../../../test/support/project-files.js';
import { ACME, ACME_SITE, testRegistry } from '../../../../test/support/test-registry.js';
import { serviceOfTest } from '../../../../test/support/use-service.js';

const PACKAGE = join(import.meta.dirname, '../..');
const README = readFileSync(join(PACKAGE, 'README.md'), 'utf8');
const MAX_SIZE_BYTES = 7 * 1024;

/** A project outside of this one, in which the packed package is installed. */
const folder = temporaryFolder('vite-project');
let server: PreviewServer | undefined;
beforeAll(() => {
  cpSync(join(PACKAGE, 'test/vite-project'), folder, { recursive: true });
  const target = join(folder, 'node_modules/@customer-authorization/browser-client');
  mkdirSync(target, { recursive: true });
  execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: PACKAGE, stdio: 'pipe' });
  const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
  for (const [, name = '', text = ''] of README.matchAll(/^```ts ([\w-]+\.ts)\n(.*?)^```$/gms))
    writeFileSync(join(folder, 'src', name), text);
  execFileSync('tar', ['-xzf', join(folder, tarball), '--strip-components=1', '-C', target]);
});
afterAll(() => server?.close());

it('a strict TypeScript project compiles with the types of the package and the files of the README', () => {
  const { config } = ts.readConfigFile(join(folder, 'tsconfig.json'), ts.sys.readFile);
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, folder);
  expect(fileNames.map((name) => basename(name)).sort()).toEqual(['main.ts', 'tokens.ts']);
  const diagnostics = ts.getPreEmitDiagnostics(ts.createProgram(fileNames, options));
  expect(diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))).toEqual([]);
});

it.runIf(process.env.TEST_CHROMIUM)('the project that Vite has built keeps its customer over a reload', async () => {
  await build({ root: folder, logLevel: 'error' });
  server = await preview({ root: folder, logLevel: 'error', preview: { port: 0, host: 'localhost' } });
  const page = server.resolvedUrls?.local[0] as string;
  const registry = testRegistry();
  registry.clients = registry.clients.map((client) => ({ ...client, origins: [new URL(page).origin] }));
  const service = await serviceOfTest({ registry, environment: { AUTH_URL: 'http://localhost:3000' } });
  const browser = await launchBrowser();
  onTestFinished(() => browser.close());
  const tab = await browser.newPage();
  const output = tab.locator('output');
  const url = service.url.replace('127.0.0.1', 'localhost'); // the host of the cookies
  const query = (clientId: string) => new URLSearchParams({ url, clientId, organizationId: ACME }).toString();
  await tab.goto(`${page}?${query(ACME_SITE)}`);
  await expect.poll(() => output.innerText()).toMatch(/^[\w-]{36}$/);
  const customer = await output.innerText();
  await tab.reload();
  await expect.poll(() => output.innerText()).toBe(customer);
  await tab.goto(`${page}?${query('nobody')}`);
  await expect.poll(() => output.innerText()).toContain('400 invalid_request');
});

it('all exports have at most 7 KB in a compressed bundle', async () => {
  const entry = join(folder, 'all.js');
  writeFileSync(entry, "export * from '@customer-authorization/browser-client';");
  const [bundle] = (await build({
    root: folder,
    logLevel: 'error',
    build: { write: false, target: 'es2022', minify: true, lib: { entry, formats: ['es'], fileName: 'all' } },
  })) as Rolldown.RolldownOutput[];
  const code = bundle?.output[0].code ?? '';
  expect(code).toContain('customer_changed');
  expect(gzipSync(code).length).toBeLessThanOrEqual(MAX_SIZE_BYTES);
});
