import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { expectAccessible, SCREENSHOTS } from '../../../../test/support/accessibility.js';
import { clickIn, resultOf, tryItSite } from '../support/try-it-page.js';

const MAX_TABS = 30;

const agentTokenFragment = `#access_token=dev%3Ax.${Buffer.from('{"aud":"agent-api"}').toString('base64url')}.x&state=own`;

/** Presses Tab until a control has the focus, which must be visible. */
async function tabTo(page: Page, id: string): Promise<void> {
  for (let count = 0; count < MAX_TABS; count++) {
    await page.keyboard.press('Tab');
    const outlineStyle = () => page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
    await expect.poll(outlineStyle).toBe('solid'); // on a busy machine, the page moves the focus later
    if ((await page.locator(':focus').getAttribute('id')) === id) return;
  }
  throw new Error(`no focus on ${id}`);
}

describe('the pages below /try', () => {
  const site = tryItSite();

  it('have no violation that axe finds, and no horizontal scroll bar', async () => {
    const check = async (page: Page, name: string) => {
      const problemCount = site.current.problems.length;
      await expectAccessible(page, name);
      // In Firefox, a screenshot adds an inline style, which the page blocks.
      if (SCREENSHOTS !== undefined) site.current.problems.splice(problemCount);
    };
    const [first, second] = [await site.current.open(), await site.current.open('/try/second-browser')];
    await check(first, 'try-new');
    await clickIn(first, 'new', 'Get a token');
    await first.getByText('Source of the token helper').click();
    await clickIn(first, 'group', 'Get a token for the group support');
    await clickIn(first, 'decode', 'Decode the token');
    await clickIn(first, 'backend', 'Get a token in the backend');
    await clickIn(first, 'user', 'Sign in as user-4711');
    await clickIn(first, 'end', 'End this token');
    await first.getByLabel('Link of the second browser').fill(await second.locator('#ask-link .url').innerText());
    await first.getByRole('button', { name: 'Continue' }).click();
    await first.locator('#approval-code').waitFor();
    await check(first, 'try-asked');
    await first.getByRole('button', { name: 'Allow' }).click();
    const link = await first.locator('#code-link .url').innerText();
    await check(first, 'try-allowed');
    await check(second, 'second-browser-new');
    await clickIn(second, 'return', 'Get a token');
    await second.goto(link);
    await second.getByRole('button', { name: 'Replace' }).waitFor();
    await check(second, 'second-browser-conflict');
    await second.getByRole('button', { name: 'Replace' }).click();
    await second.locator('#redeem-result', { hasText: 'is now customer' }).waitFor();
    await check(second, 'second-browser-done');
    await first.evaluate("sessionStorage.setItem('try-it state', 'own')");
    await first.goto(`${site.current.url}/try/signed-in${agentTokenFragment}`);
    await check(first, 'signed-in');
    await first.reload();
    await check(first, 'signed-in-empty');
    await first.goto(`${site.current.url}/try/signed-in?code=dev%3A1&state=any`);
    await check(first, 'signed-in-code');
  });

  it('can be used with the keyboard only, and say each result as a status', async () => {
    const [page, second] = [await site.current.open(), await site.current.open('/try/second-browser')];
    await page.bringToFront(); // Firefox gives the focus only to the page in front
    await page.keyboard.press('Tab');
    expect(await page.locator(':focus').innerText()).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    for (const id of ['new', 'returning', 'parallel', 'group', 'decode']) {
      await tabTo(page, id);
      await page.keyboard.press('Enter');
      const step = id === 'parallel' ? 'returning' : id;
      await page.locator(`#${step}-result[role=status] p`).waitFor();
      expect(await page.locator(':focus').getAttribute('id')).toBe(id);
    }
    await tabTo(page, 'move-link');
    await page.keyboard.insertText(await second.locator('#ask-link .url').innerText());
    await page.keyboard.press('Enter');
    await page.locator('#approval-title:focus').waitFor();
    await tabTo(page, 'allow');
    await page.keyboard.press('Enter');
    expect(await resultOf(page, 'move')).toContain('only in the second browser');
    await tabTo(page, 'external-id');
    await page.keyboard.press('Enter');
    expect(await resultOf(page, 'backend')).toContain('customer');
    for (const id of ['user-sign-in', 'user-sign-out', 'end-token', 'end-sessions', 'forget']) await tabTo(page, id);
    await page.keyboard.press('Space');
    expect(await resultOf(page, 'forget')).toContain('has forgotten this browser');
  });
});
