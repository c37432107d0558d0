import { describe, expect, it, onTestFinished } from 'vitest';
import { BROWSER_NAME, launchBrowser } from '../support/browser-launch.js';
import { useService } from '../support/use-service.js';

const service = useService();

describe('/docs', () => {
  it('shows every route of the document, loads nothing from other hosts, and causes no error in the browser', async () => {
    const url = service.managementUrl;
    const browser = await launchBrowser();
    onTestFinished(() => browser.close());
    const page = await browser.newPage({ colorScheme: 'dark' });
    const problems: string[] = [];
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
    page.on('pageerror', ({ message }) => problems.push(message));
    page.on('request', (request) => {
      const requested = request.url();
      if (!requested.startsWith(url) && !requested.startsWith('data:')) problems.push(requested);
    });
    await page.goto(`${url}/docs`);
    await page.getByText('Get a customer token by a grant').waitFor();
    // WebDriver BiDi cannot change the color scheme.
    expect(await page.locator('html.dark-mode').count()).toBe(BROWSER_NAME === 'firefox' ? 0 : 1);
    const shown = await page.locator('.opblock-summary-path').allInnerTexts();
    const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: object };
    expect(shown[0]?.replaceAll('\u200b', '').trim()).toMatch(/^\/v2\/customer\//);
    expect(new Set(shown.map((path) => path.replaceAll('\u200b', '').trim()))).toEqual(new Set(Object.keys(paths)));
    await page.getByText('Get a customer token by a grant').click();
    await page.getByRole('button', { name: 'Try it out' }).click();
    await page.getByRole('button', { name: 'Execute' }).waitFor();
    if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/docs.png` });
    expect(problems).toEqual([]);
  });
});
