import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../../scripts/free-port.js';
import { CustomerEntity } from '../../../src/customer/customer.entity.js';
import { launchBrowser } from '../../support/browser-launch.js';
import { runProgram, TestProcess } from '../../support/processes.js';
import { read, temporaryFolder } from '../../support/project-files.js';
import { ACME_SITE, testRegistry } from '../../support/test-registry.js';
import { useService } from '../../support/use-service.js';

const APP = 'examples/integrating/nextjs';
const CHAT = 'nextjs/app/chat.jsx';
const DEMO_CLIENT = '9cbf3a968289727cb3cdfe83ab1d9836';
/** A folder with Next.js. `npm run test:processes` sets it. */
const { TEST_NEXTJS = '', TEST_CHROMIUM } = process.env;

describe.skipIf(!TEST_NEXTJS || !TEST_CHROMIUM)('examples/integrating/nextjs (skipped without Next.js)', () => {
  const folder = temporaryFolder('nextjs');
  let origin: string;
  let server: TestProcess;
  let browser: Browser;
  const service = useService(async () => {
    origin = `http://localhost:${await freePort()}`;
    const registry = testRegistry();
    registry.clients = registry.clients.map((client) => ({ ...client, origins: [origin] }));
    return { registry, environment: { AUTH_URL: 'http://localhost:3000' } };
  });

  beforeAll(async () => {
    cpSync(APP, folder, { recursive: true });
    const tokens = read(`${APP}/app/tokens.js`).replace(DEMO_CLIENT, ACME_SITE);
    writeFileSync(
      join(folder, 'app/tokens.js'),
      tokens.replace('localhost:3000', `localhost:${new URL(service.url).port}`),
    );
    mkdirSync(join(folder, 'node_modules'));
    for (const name of ['next', 'react', 'react-dom'])
      symlinkSync(join(TEST_NEXTJS, 'node_modules', name), join(folder, 'node_modules', name));
    cpSync('packages/browser-client', join(folder, 'node_modules/@customer-authorization/browser-client'), {
      recursive: true,
    });
    const next = join(TEST_NEXTJS, 'node_modules/next/dist/bin/next');
    const env = { PATH: process.env.PATH, HOME: folder, NEXT_TELEMETRY_DISABLED: '1' };
    const built = await runProgram(process.execPath, [next, 'build', '--webpack'], { env, cwd: folder });
    expect(built, built.stderr).toMatchObject({ code: 0 });
    server = TestProcess.spawn(process.execPath, [next, 'start', '-p', new URL(origin).port], env, folder);
    await server.says(/Ready/);
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    server?.signal('SIGTERM');
  });

  const customerCount = () => service.rowsOf(CustomerEntity).count();

  it(`${CHAT} is rendered on the server without a token and without a customer`, async () => {
    const before = await customerCount();
    expect(await (await fetch(origin)).text()).toContain('<p>…</p>');
    expect(await customerCount()).toBe(before);
  });

  it(`${CHAT} keeps one customer in the browser until it leaves, also after a reload`, async () => {
    const before = await customerCount();
    const page = await browser.newPage();
    await page.goto(origin);
    const text = () => page.getByText(/You are the customer [\w-]{36}\./).innerText();
    const first = await text();
    await page.reload();
    expect(await text()).toBe(first);
    expect(await customerCount()).toBe(before + 1);
    await Promise.all([page.waitForEvent('load'), page.getByRole('button', { name: 'Leave this browser' }).click()]);
    expect(await text()).not.toBe(first);
  });
});
