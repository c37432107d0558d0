import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { GuideSite, runInPage } from '../../../../test/support/guide-site.js';

let site: GuideSite;
beforeAll(async () => {
  site = await GuideSite.start();
});
afterEach(() => site.clear());
afterAll(() => site?.stop());

const BOTH = ['locks', 'storage'];
const LOCKS = ['locks'];
const STORAGE = ['storage'];

/** Each function of the package that can fail, and what it needs of the browser. */
const CALLS: [call: string, needs: string[]][] = [
  ['tokens.get()', LOCKS],
  ['tokens.entityId()', LOCKS],
  ['tokens.fetch(SERVICE)', LOCKS],
  ['tokens.requestToken()', LOCKS],
  ['leaveThisBrowser(tokens)', LOCKS],
  ['logOutEverywhere(tokens)', LOCKS],
  ['logOutMovedDevices(tokens)', LOCKS],
  ['signIn(tokens, location.origin)', BOTH],
  ['resumeSignIn(tokens, location.origin)', BOTH],
  ['signOut(tokens, location.origin)', BOTH],
  ["approveMove(tokens, 'any', 'any')", LOCKS],
  ['sendMove(room, tokens, async () => true)', LOCKS],
  ["exchangeOnce(SERVICE, { remember: 'browser' }, () => undefined)", LOCKS],
  ['new NewBrowser(tokens).beginMove()', STORAGE],
  ["new NewBrowser(tokens).finishMove('dev:any')", STORAGE],
  [
    'receiveMove(room.url, new NewBrowser(tokens), { showCode: () => undefined, signal: AbortSignal.abort() })',
    STORAGE,
  ],
  ["openRoom(location.origin + '/rooms')", []],
  ['closeRoom({ ...room })', []], // a copy, because sendMove of a closed room resolves
  ["endToken(tokens, 'any')", []],
  ["challengeOf('any')", []],
];

/** The errors with which the calls reject, on a page whose backend responds. */
async function errorsOf(tab: Page): Promise<unknown[]> {
  const challenge = { clientId: 'any', challenge: 'c'.repeat(43) };
  const json = { assertion: 'any', room: 'any', ownerSecret: 'any', ...challenge };
  await tab.route(/\/(assertion|sign-out|rooms.*)$/, (route) => route.fulfill({ json }));
  const calls = CALLS.map(([call]) => `() => ${call}`);
  return runInPage(
    tab,
    `const room = { id: 'any', url: location.origin + '/rooms/any', headers: {} };
    return Promise.all([${calls}].map(async (call) => {
      try {
        await call();
        return 'resolved';
      } catch ({ name, error }) {
        return [name, error];
      }
    }));`,
  );
}

const NO_CRYPTO = "Object.defineProperty(crypto, 'subtle', { value: undefined })";
const EXCHANGE_THAT_CANNOT_RESTORE =
  "exchangeOnce(tokens.url + '/v2/customer/token', { remember: 'browser' }, () => { throw new Error('full'); })";
const BLOCKED = ['RequestError', 'cookies_blocked'];

it.each([
  ['cookies', BOTH],
  ['locks', LOCKS],
  ['storage', STORAGE],
])('every function that needs them rejects with cookies_blocked if %s throw', async (what, refused) => {
  const tab = await site.openPage();
  const refuse = `() => { throw new DOMException('Access is denied', 'SecurityError'); }`;
  if (refused.includes('locks')) await tab.evaluate(`navigator.locks.request = ${refuse}`);
  if (refused.includes('storage')) {
    await tab.evaluate(`Object.defineProperty(window, 'localStorage', { get: ${refuse} })`);
  }
  if (what === 'cookies') await tab.evaluate(`window.BroadcastChannel = class { constructor() { (${refuse})(); } }`);
  const errors = await errorsOf(tab);
  for (const [index, [call, needs]] of CALLS.entries()) {
    const isRefused = needs.some((each) => refused.includes(each));
    const expected = isRefused ? BLOCKED : expect.toSatisfy((error) => error === 'resolved' || error[0] === BLOCKED[0]);
    expect({ call, error: errors[index] }).toEqual({ call, error: expected });
  }
});

it.each([
  ['locks', "navigator.locks.request = () => Promise.reject(new DOMException('lost', 'AbortError'))", 'tokens.get()'],
  ['storage', "localStorage.setItem('move-verifier', '{')", 'new NewBrowser(tokens).beginMove()'],
  ['crypto', NO_CRYPTO, 'new NewBrowser(tokens).beginMove()'],
  ['crypto', NO_CRYPTO, "challengeOf('any')"],
  ['texts', '', "(async () => codeOf('?'))()"],
  ['rooms', '', "openRoom(location.origin + '/null')"],
  ['backends', '', "signIn(tokens, location.origin + '/null')"],
  ['callbacks', '', EXCHANGE_THAT_CANNOT_RESTORE],
])('rejects with a RequestError that has the cause if %s fail in another way', async (_what, breaks, call) => {
  const tab = await site.openPage();
  await tab.route(/\/null/, (route) => route.fulfill({ json: null }));
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
