import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestService, type TestService } from '../support/test-service.js';

let service: TestService;
let browser: Browser;

beforeAll(async () => {
  service = await startTestService();
  browser = await chromium.launch({
    executablePath: process.env.TEST_CHROMIUM as string,
    chromiumSandbox: false, // Chromium has no sandbox for root, and the test opens only its own page.
    args: ['--disable-gpu'],
  });
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

describe('/docs on the management port', () => {
  it('shows every route, loads nothing from other hosts, and causes no error in the browser', async () => {
    const page = await browser.newPage();
    const problems: string[] = [];
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
    page.on('pageerror', ({ message }) => problems.push(message));
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(service.managementUrl) && !url.startsWith('data:')) problems.push(url);
    });
    await page.goto(`${service.managementUrl}/docs`);
    await page.getByText('Get a customer token by a grant').waitFor();
    const shown = await page.locator('.opblock-summary-path').allInnerTexts();
    const { paths } = (await (await fetch(`${service.managementUrl}/openapi.json`)).json()) as { paths: object };
    expect(new Set(shown.map((path) => path.replaceAll('\u200b', '').trim()))).toEqual(new Set(Object.keys(paths)));
    if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/docs.png` });
    expect(problems).toEqual([]);
  });
});
