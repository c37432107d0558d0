import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestService, type TestService } from '../support/test-service.js';

let service: TestService;
let browser: Browser;

beforeAll(async () => {
  service = await startTestService();
  browser = await chromium.launch({
    executablePath: process.env.TEST_CHROMIUM as string,
    chromiumSandbox: false, // there is none for root, and the page is ours
    args: ['--disable-gpu'],
  });
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

describe('/docs on the management port', () => {
  it('shows every address, asks nobody else for anything, and breaks none of its own rules', async () => {
    const page = await browser.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', ({ message }) => complaints.push(message));
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(service.managementUrl) && !url.startsWith('data:')) complaints.push(url);
    });
    await page.goto(`${service.managementUrl}/docs`);
    await page.getByText('A customer token, by one of the grants').waitFor();
    const shown = await page.locator('.opblock-summary-path').allInnerTexts();
    const { paths } = (await (await fetch(`${service.managementUrl}/openapi.json`)).json()) as { paths: object };
    expect(new Set(shown.map((path) => path.replaceAll('\u200b', '').trim()))).toEqual(new Set(Object.keys(paths)));
    if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/docs.png` });
    expect(complaints).toEqual([]);
  });
});
