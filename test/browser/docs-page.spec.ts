import { describe, expect, it, onTestFinished } from 'vitest';
import { launchBrowser } from '../support/browser-launch.js';
import { useService } from '../support/use-service.js';

const service = useService({ environment: { TRY_IT: 'true' } });

describe.each([
  ['management', 'managementUrl', 'dark', 'html.dark-mode'],
  ['public', 'url', 'light', 'html:not(.dark-mode)'],
] as const)('/docs on the %s port (%s), in a browser whose pages are %s', (port, urlName, colorScheme, selector) => {
  it('shows every route of the document, loads nothing from other hosts, and causes no error in the browser', async () => {
    const url = service[urlName];
    const browser = await launchBrowser({ colorScheme }); // Firefox takes the color scheme at its start
    onTestFinished(() => browser.close());
    const page = await browser.newPage({ colorScheme });
    const problems: string[] = [];
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
    page.on('pageerror', ({ message }) => problems.push(message));
    page.on('request', (request) => {
      const requested = request.url();
      if (!requested.startsWith(url) && !requested.startsWith('data:')) problems.push(requested);
    });
    await page.goto(`${url}/docs`);
    await page.getByText('Get a customer token by a grant').waitFor();
    await page.locator(selector).waitFor();
    const shown = await page.locator('.opblock-summary-path').allInnerTexts();
    const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: object };
    expect(shown[0]?.replaceAll('\u200b', '').trim()).toMatch(/^\/v2\/customer\//);
    expect(new Set(shown.map((path) => path.replaceAll('\u200b', '').trim()))).toEqual(new Set(Object.keys(paths)));
    await page.getByText('Get a customer token by a grant').click();
    await page.getByRole('button', { name: 'Try it out' }).click();
    await page.getByRole('button', { name: 'Execute' }).waitFor();
    if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/docs-${port}.png` });
    expect(problems).toEqual([]);
  });
});
