import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { JWT_BEARER } from '../../../../test/support/assertion-issuer.js';
import { deferred } from '../../../../test/support/deferred.js';
import { customerOf, GuideSite, runInPage } from '../../../../test/support/guide-site.js';
import { ASSERTION, routeBackend, signInRegistry } from '../../../../test/support/sign-in-backend.js';
import { ACME_ORIGIN, testRegistry } from '../../../../test/support/test-registry.js';

let site: GuideSite;
/** The user of a test. */
let userId: string;
beforeEach(() => {
  userId = randomUUID();
});
beforeAll(async () => {
  const grants = { grant_types: ['cookie', JWT_BEARER], grants: { [JWT_BEARER]: { remember: ['browser'] } } };
  site = await GuideSite.start(signInRegistry(testRegistry(), grants));
});
afterEach(() => site.clear());
afterAll(() => site?.stop());

/** Opens a page, with the backend of the guide at its origin. */
async function openPage(session: { userId?: string }, isReleased?: Promise<void>): Promise<Page> {
  const tab = await site.openPage();
  await routeBackend(tab, session, isReleased);
  return tab;
}
const signIn = (tab: Page) => runInPage<{ linkedEntityId?: string }>(tab, `return signIn(tokens, '${ACME_ORIGIN}');`);
const resume = (tab: Page) =>
  runInPage<string>(tab, `await resumeSignIn(tokens, '${ACME_ORIGIN}'); return customer();`);
const signOut = (tab: Page) => runInPage(tab, `await signOut(tokens, '${ACME_ORIGIN}');`);

describe('signIn and signOut, with backend/assertion.js of the guide', () => {
  it('makes the browser the user’s from the first visit to the sign-out and the next visitor', async () => {
    const session: { userId?: string } = {};
    const [tab, second] = [await openPage(session), await openPage(session)];
    const visitor = await customerOf(tab);
    expect(await customerOf(second)).toBe(visitor);

    session.userId = userId;
    await signIn(tab);
    expect(await customerOf(tab)).toBe(visitor);
    await tab.reload();
    expect(await customerOf(tab)).toBe(visitor);
    await expect.poll(() => customerOf(second)).toBe(visitor);

    await signOut(tab);
    const next = await customerOf(tab);
    expect(next).not.toBe(visitor);
    await expect.poll(() => customerOf(second)).toBe(next);

    session.userId = randomUUID();
    await signIn(tab);
    expect(await customerOf(tab)).toBe(next);
    session.userId = userId;
    await signIn(tab);
    expect(await customerOf(tab)).toBe(visitor);
    await expect.poll(() => customerOf(second)).toBe(visitor);
  });

  it('leads a second device to the same customer, whose visitor had another one', async () => {
    const first = await openPage({ userId });
    await customerOf(first);
    await signIn(first);
    const user = await customerOf(first);
    await site.clear(); // as a device without cookies
    const device = await openPage({ userId });
    expect(await customerOf(device)).not.toBe(user);
    await signIn(device);
    expect(await customerOf(device)).toBe(user);
    await device.reload();
    expect(await customerOf(device)).toBe(user);
  });

  it('resolves to the visitor’s customer once, if it was linked to a known user', async () => {
    const first = await openPage({ userId });
    await customerOf(first);
    expect(await signIn(first), 'a new user takes the customer over').toEqual({});
    await site.clear(); // as a device without cookies
    const device = await openPage({ userId });
    const visitor = await customerOf(device);
    expect(await signIn(device)).toEqual({ linkedEntityId: visitor });
    expect(await signIn(device)).toEqual({});
  });

  it('resolves to the visitor’s customer after a repeated sign-in of an earlier page', async () => {
    await signIn(await openPage({ userId }));
    await site.clear();
    const tab = await openPage({ userId });
    const visitor = await customerOf(tab);
    await tab.route(ASSERTION, (route) => route.fulfill({ status: 500, json: {} }), { times: 12 });
    await tab.evaluate('setTimeout = (callback) => queueMicrotask(callback)'); // no pauses between the attempts
    await expect(signIn(tab)).rejects.toThrow('500');
    await tab.unroute(ASSERTION);
    await tab.close();
    const next = await openPage({ userId });
    const resumed = `return (await resumeSignIn(tokens, '${ACME_ORIGIN}')).linkedEntityId;`;
    expect(await runInPage(next, resumed)).toBe(visitor);
  });

  it('keeps the user’s cookies when tabs request tokens during the sign-in', async () => {
    const session = { userId };
    const [tab, second] = [await openPage(session), await openPage(session)];
    await customerOf(tab);
    await signIn(tab);
    const user = await customerOf(tab);
    await site.clear();
    const [one, two] = [await openPage(session), await openPage(session)];
    // a sign-in ends the tokens of the visitor, and chat.js reloads the other page
    const isChange = (error: Error) => expect(error.message).toMatch(/customer_changed|context was destroyed/);
    const calls = [signIn(one), customerOf(two), signIn(two), customerOf(one)];
    await Promise.all(calls.map((call) => call.catch(isChange)));
    for (const page of [one, two]) {
      await page.reload();
      expect(await customerOf(page)).toBe(user);
    }
    expect(second.isClosed()).toBe(true);
  });

  it('gets another assertion after a lost response, and sends none in a URL', async () => {
    const tab = await openPage({ userId });
    await customerOf(tab);
    const status = site.front.loseResponse('/v2/customer/token');
    await signIn(tab);
    expect(await status).toBe(200);
    const user = await customerOf(tab);
    await tab.reload();
    expect(await customerOf(tab)).toBe(user);
    expect(site.front.seen.filter(({ path }) => path.includes('?'))).toEqual([]);
  });

  it('rejects without a session, and the visitor stays', async () => {
    const tab = await openPage({});
    const visitor = await customerOf(tab);
    await expect(signIn(tab)).rejects.toThrow('401 signed_out');
    expect(await customerOf(tab)).toBe(visitor);
  });
});

describe('resumeSignIn', () => {
  it('keeps the user after a reload and a loss of the cookies, and leaves when the session has ended', async () => {
    const session: { userId?: string } = {};
    const tab = await openPage(session);
    const reloaded = async () => {
      await tab.reload();
      return resume(tab);
    };
    const visitor = await reloaded();
    expect(await reloaded()).toBe(visitor);

    session.userId = userId;
    await signIn(tab);
    expect(await reloaded()).toBe(visitor);
    await tab.context().clearCookies();
    expect(await reloaded()).toBe(visitor);

    delete session.userId;
    const next = await reloaded();
    expect(next).not.toBe(visitor);
    expect(await reloaded()).toBe(next);
  });

  it('does not sign the user in again after a sign-out', async () => {
    const session: { userId?: string } = { userId };
    const tab = await openPage(session);
    await signIn(tab);
    const user = await customerOf(tab);
    await signOut(tab);
    session.userId = userId; // of another tab, and no sign-in to the chat
    await tab.reload();
    expect(await resume(tab)).not.toBe(user);
  });

  it.each(['leaveThisBrowser', 'logOutEverywhere'])('does not sign the user in again after %s', async (leave) => {
    const tab = await openPage({ userId });
    await signIn(tab);
    const user = await customerOf(tab);
    await runInPage(tab, `await ${leave}(tokens);`);
    await tab.reload();
    const visitor = await resume(tab);
    expect(visitor).not.toBe(user);
    await tab.reload();
    expect(await resume(tab)).toBe(visitor);
  });

  it('of one tab lets the other tabs keep their tokens, unless their customer has changed', async () => {
    const [tab, other] = [await openPage({ userId }), await openPage({ userId })];
    await signIn(tab);
    const tokenOf = (page: Page) => runInPage<string>(page, 'return tokens.get();');
    const user = await customerOf(other);
    const kept = await tokenOf(other);
    await other.evaluate(`void (globalThis.heard = new Promise((resolve) => {
      new BroadcastChannel('customer-token').onmessage = ({ data }) => resolve(data);
    }))`);
    site.front.seen.length = 0;
    await tab.reload();
    expect(await resume(tab)).toBe(user);
    await other.evaluate('heard'); // the message of the tab
    expect(await tokenOf(other)).toBe(kept);
    expect(site.front.seen.filter(({ path }) => path === '/v2/customer/token')).toHaveLength(2);

    await tab.context().clearCookies();
    await other.reload();
    const visitor = await customerOf(other);
    expect(visitor).not.toBe(user);
    await tab.reload();
    expect(await resume(tab)).toBe(user);
    await expect.poll(() => customerOf(other)).toBe(user);
  });

  it('leaves the user of a tab that was closed before its script had the response to the sign-in', async () => {
    const session: { userId?: string } = { userId };
    const tab = await openPage(session);
    const visitor = await customerOf(tab);
    await tab.evaluate(`Response.prototype.json = function () {
      return this.url.endsWith('/token') ? new Promise(() => undefined) : this.text().then(JSON.parse);
    }`);
    const response = tab.waitForResponse('**/v2/customer/token');
    await runInPage(tab, `void signIn(tokens, '${ACME_ORIGIN}');`);
    expect((await response).status()).toBe(200);
    await tab.close();

    delete session.userId;
    const next = await openPage(session);
    expect(await resume(next)).not.toBe(visitor);
  });

  it('repeats a sign-in that was rejected, and the user keeps the customer of the visitor', async () => {
    const session = { userId };
    const tab = await openPage(session);
    const visitor = await customerOf(tab);
    await tab.route(ASSERTION, (route) => route.fulfill({ status: 500, json: {} }), { times: 12 });
    await tab.evaluate('setTimeout = (callback) => queueMicrotask(callback)'); // no pauses between the attempts
    await expect(signIn(tab)).rejects.toThrow('500');
    await tab.unroute(ASSERTION);
    await tab.close();

    const next = await openPage(session);
    expect(await resume(next)).toBe(visitor);
    await site.clear(); // as a device without cookies
    const device = await openPage(session);
    await signIn(device);
    expect(await customerOf(device)).toBe(visitor);
  });

  it('of one tab does not sign the user in again after a sign-out in another', async () => {
    const session: { userId?: string } = { userId };
    const released = deferred();
    const [tab, second] = [await openPage(session), await openPage(session, released.promise)];
    await signIn(tab);
    const user = await customerOf(tab);
    const request = second.waitForRequest(ASSERTION);
    const resumed = resume(second);
    await request;
    const signedOut = signOut(tab);
    const waiting = 'navigator.locks.query().then(({ pending }) => pending.length)';
    await expect.poll(() => tab.evaluate(waiting)).toBe(1);
    released.resolve();
    await Promise.all([resumed, signedOut]);
    await tab.reload();
    // the page reloads once more if it hears late that the customer has changed
    await expect.poll(() => resume(tab)).not.toBe(user);
  });
});
