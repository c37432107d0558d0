import type { Page } from 'playwright-core';
import decodeQR from 'qr/decode.js';
import { describe, expect, it } from 'vitest';
import { BROWSER_NAME } from '../../../../test/support/browser-launch.js';
import { clickIn, customerIn, recordRequests, resultOf, tryItSite } from '../support/try-it-page.js';

const SECOND = '/try/second-browser';
const MODULE_PIXEL_COUNT = 4;
const FOREIGN_LINKS = [
  ...['', 'https://evil.example/#challenge=', '#challenge=<img src=x onerror=alert(1)>', '#challenge=short'],
  ...[`#challenge=${'a'.repeat(44)}`, '#code=dev:x', 'javascript:alert(1)', '#__proto__=x'],
];

const site = tryItSite();

/** The link in a part of a page. The QR code next to it must have the same text. */
async function linkIn(page: Page, part: string): Promise<string> {
  const link = await page.locator(`${part} .url`).innerText();
  const size = Number((await page.locator(`${part} svg`).getAttribute('viewBox'))?.split(' ')[2]);
  const dark = await page.locator(`${part} svg path`).getAttribute('d');
  expect(decodeQR(imageOf(size, dark ?? ''))).toBe(link);
  return link;
}

/** The pixels of a QR code that is drawn as a path of squares. */
function imageOf(size: number, path: string) {
  const width = size * MODULE_PIXEL_COUNT;
  const data = new Uint8Array(width * width * 4).fill(255);
  for (const [, x, y] of path.matchAll(/M(\d+) (\d+)/g)) {
    for (let pixel = 0; pixel < MODULE_PIXEL_COUNT ** 2; pixel++) {
      const column = Number(x) * MODULE_PIXEL_COUNT + (pixel % MODULE_PIXEL_COUNT);
      const row = Number(y) * MODULE_PIXEL_COUNT + Math.floor(pixel / MODULE_PIXEL_COUNT);
      data.fill(0, (row * width + column) * 4, (row * width + column) * 4 + 3);
    }
  }
  return { width, height: width, data };
}

/** Follows the steps until the first browser shows the link with the code. */
async function approve(first: Page, second: Page): Promise<string> {
  await first.goto(await linkIn(second, '#ask-link'));
  await first.locator('#approval-code').waitFor();
  const code = await first.locator('#approval-code').innerText();
  expect(code).toMatch(/^\d{4} \d{4} \d{4}$/);
  expect(code).toBe(await second.locator('#ask-code').innerText());
  await first.getByRole('button', { name: 'Allow' }).click();
  return linkIn(first, '#code-link');
}

describe('the move to a second browser on the try-it page', () => {
  it('makes the second browser the same customer by two links, also on later visits', async () => {
    const [first, second] = [await site.current.open(), await site.current.open(SECOND)];
    const customer = customerIn(await clickIn(first, 'new', 'Get a token'));
    expect(await linkIn(first, '#second-link')).toBe(site.current.url + SECOND);
    await second.goto(await approve(first, second));
    expect(await resultOf(second, 'redeem')).toContain(`This browser is now customer ${customer}`);
    expect(second.url()).toBe(site.current.url + SECOND);
    await second.reload();
    expect(customerIn(await clickIn(second, 'return', 'Get a token'))).toBe(customer);
    expect(customerIn(await clickIn(first, 'returning', 'Ask again'))).toBe(customer);
  });

  it('shows the first browser only the challenge, and sends the verifier only to the service', async () => {
    const [first, second] = [await site.current.open(), await site.current.open(SECOND)];
    const verifier = await second.evaluate<string>("localStorage.getItem('try-it verifier')");
    expect(verifier).toMatch(/^[\w-]{43}$/);
    const codeLink = await approve(first, second);
    for (const page of [first, second]) expect(await page.content()).not.toContain(verifier);
    const redemption = second.waitForRequest('**/v2/customer/token');
    await second.getByLabel('Link of the first browser').fill(codeLink);
    await second.getByRole('button', { name: 'Continue' }).click();
    const sent = (await redemption).postDataJSON();
    // WebDriver BiDi of Firefox does not show the bodies of requests
    if (BROWSER_NAME !== 'firefox') expect(sent).toMatchObject({ code_verifier: verifier, remember: 'browser' });
    await resultOf(second, 'redeem');
    expect(await second.evaluate("localStorage.getItem('try-it verifier')")).toBeNull();
  });

  it('gives nothing to a third browser that has copied the link with the code', async () => {
    const [first, second, third] = [
      await site.current.open(),
      await site.current.open(SECOND),
      await site.current.open(SECOND),
    ];
    const codeLink = await approve(first, second);
    await third.goto(codeLink);
    expect(await resultOf(third, 'redeem')).toContain('400 invalid_grant');
    expect(await third.context().cookies()).toEqual([]);
    await second.goto(codeLink);
    expect(await resultOf(second, 'redeem')).toContain('This browser is now customer');
  });

  it('asks before it replaces the customer of the second browser', async () => {
    const [first, second] = [await site.current.open(), await site.current.open(SECOND)];
    const own = customerIn(await clickIn(second, 'return', 'Get a token'));
    const codeLink = await approve(first, second);
    await second.goto(codeLink);
    await second.getByRole('heading', { name: 'This browser already has another customer' }).waitFor();
    expect(await second.locator(':focus').getAttribute('id')).toBe('conflict-title');
    expect(await clickIn(second, 'redeem', 'Cancel')).toContain('stays its own customer');
    expect(customerIn(await clickIn(second, 'return', 'Get a token'))).toBe(own);
    await second.goto(codeLink);
    expect(await clickIn(second, 'redeem', 'Replace')).toContain('This browser is now customer');
    expect(customerIn(await clickIn(second, 'return', 'Get a token'))).not.toBe(own);
  });

  it('sends nothing if the first browser denies', async () => {
    const [first, second] = [await site.current.open(), await site.current.open(SECOND)];
    await first.goto(await linkIn(second, '#ask-link'));
    const sent = recordRequests(first);
    expect(await clickIn(first, 'move', 'Deny')).toBe('Denied. This browser sent nothing.');
    expect(sent).toEqual([]);
  });

  it('rejects a pasted link that the other page did not make, and shows it only as text', async () => {
    const [first, second] = [await site.current.open(), await site.current.open(SECOND)];
    for (const link of FOREIGN_LINKS) {
      await first.getByLabel('Link of the second browser').fill(link);
      expect(await clickIn(first, 'move', 'Continue')).toContain('This is not a link of the second browser');
      await second.getByLabel('Link of the first browser').fill(link);
      expect(await clickIn(second, 'redeem', 'Continue')).toContain('This is not a link of the first browser');
    }
    for (const page of [first, second]) expect(await page.locator('img').count()).toBe(0);
  });
});
