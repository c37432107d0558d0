import type { Page } from 'playwright-core';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { GuideSite, runInPage } from '../../../../test/support/guide-site.js';

let site: GuideSite;
beforeEach(async () => {
  site = await GuideSite.start();
});
afterEach(() => site?.stop());

/** What each function of the package does that a page can call without a response of the service. */
const CALLS = [
  ...['tokens.get()', 'tokens.entityId()', 'tokens.fetch(SERVICE)', 'tokens.requestToken()'],
  ...['leaveThisBrowser(tokens)', 'logOutEverywhere(tokens)', 'signOut(tokens, location.origin)'],
  ...['signIn(tokens, location.origin)', "approveMove(tokens, 'any', 'any')"],
  ...['new NewBrowser(tokens).beginMove()', "new NewBrowser(tokens).finishMove('dev:any')"],
  "receiveMove('/rooms/any', new NewBrowser(tokens), { showCode: () => undefined })",
];

/** The errors with which the calls reject, on a page whose backend responds. */
async function errorsOf(tab: Page): Promise<unknown[]> {
  await tab.route(/\/(assertion|sign-out)$/, (route) => route.fulfill({ json: { assertion: 'any' } }));
  return runInPage(
    tab,
    `return Promise.all([${CALLS}].map((call) => call.then(() => 'resolved', ({ name, error }) => [name, error])));`,
  );
}

it.each(['cookies', 'locks', 'storage'])('every function rejects with cookies_blocked if %s throw', async (what) => {
  const tab = await site.openPage();
  const refuse = `() => { throw new DOMException('Access is denied', 'SecurityError'); }`;
  if (what !== 'storage') await tab.evaluate(`navigator.locks.request = ${refuse}`);
  if (what !== 'locks') await tab.evaluate(`Object.defineProperty(window, 'localStorage', { get: ${refuse} })`);
  if (what === 'cookies') await tab.evaluate(`window.BroadcastChannel = class { constructor() { (${refuse})(); } }`);
  const usesStorage = CALLS.map((call) => call.includes('NewBrowser'));
  const errors = await errorsOf(tab);
  const expected = CALLS.map((_call, index) => what === 'cookies' || usesStorage[index] === (what === 'storage'));
  const blocked = ['RequestError', 'cookies_blocked'];
  expect(errors.filter((_error, index) => expected[index])).toEqual(expected.filter(Boolean).map(() => blocked));
});

it.each([
  ['locks', "navigator.locks.request = () => Promise.reject(new DOMException('lost', 'AbortError'))", 'tokens.get()'],
  ['storage', "localStorage.setItem('move-verifier', '{')", 'new NewBrowser(tokens).beginMove()'],
  ['crypto', "Object.defineProperty(crypto, 'subtle', { value: undefined })", 'new NewBrowser(tokens).beginMove()'],
])('rejects with a RequestError that has the cause if %s fail in another way', async (_what, breaks, call) => {
  const tab = await site.openPage();
  await tab.evaluate(breaks);
  const body = `return ${call}.catch(({ name, error, cause }) => [name, error, cause instanceof Error || cause instanceof DOMException]);`;
  expect(await runInPage(tab, body)).toEqual(['RequestError', 'unexpected', true]);
});

it('rejects with a RequestError if the network responds with JSON of its own', async () => {
  const tab = await site.openPage();
  const headers = {
    'Access-Control-Allow-Credentials': 'true',
    'Access-Control-Allow-Origin': new URL(tab.url()).origin,
  };
  await tab.route('**/v2/customer/token', (route) => route.fulfill({ json: { portal: true }, headers }));
  const fields = await runInPage(tab, 'return tokens.get().catch(({ ...fields }) => fields);');
  expect(fields).toMatchObject({ error: 'no_response', isTemporary: true });
});
