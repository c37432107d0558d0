import { randomUUID } from 'node:crypto';
import type { Frame } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { anonymousRegistry } from '../../../../test/support/anonymous-grant.js';
import { JWT_BEARER } from '../../../../test/support/assertion-issuer.js';
import {
  type ClientBrowser,
  ClientPages,
  OF_PAGES,
  renewedCustomerOf,
  runIn,
  type Situation,
  WITHOUT_COOKIES,
} from '../../../../test/support/client-pages.js';
import { WITH_REFRESH } from '../../../../test/support/customer-refresh.js';
import { temporaryFolder } from '../../../../test/support/project-files.js';
import { ASSERTION, routeBackend, signInRegistry } from '../../../../test/support/sign-in-backend.js';
import { ACME_ORIGIN } from '../../../../test/support/test-registry.js';

const folder = temporaryFolder('profiles');
let pages: ClientPages;
let userId: string;
beforeAll(async () => {
  const grants = {
    identity_token: { remember: ['browser', 'refresh_token'] },
    [JWT_BEARER]: { remember: ['browser'] },
  };
  const ofSite = { ...OF_PAGES, grant_types: [...WITH_REFRESH, 'anonymous', JWT_BEARER], grants };
  const registry = signInRegistry(anonymousRegistry(), ofSite);
  pages = await ClientPages.start(folder, { COOKIE_PARTITIONED: 'false' }, registry);
});
beforeEach(() => {
  userId = randomUUID();
});
afterEach(() => pages.clear());
afterAll(() => pages?.stop());

async function open(browser: ClientBrowser, session: { userId?: string }, situation: Situation = 'another site') {
  const page = await browser.open(situation);
  await routeBackend(page.page(), session);
  await runIn(page, `await client.resumeSignIn(tokens, '${ACME_ORIGIN}');`);
  return page;
}
const signIn = (page: Frame) => runIn(page, `return client.signIn(tokens, '${ACME_ORIGIN}');`);
const signOut = (page: Frame) => runIn(page, `await client.signOut(tokens, '${ACME_ORIGIN}');`);
const resume = (page: Frame) =>
  runIn<string>(page, `await client.resumeSignIn(tokens, '${ACME_ORIGIN}'); return tokens.entityId();`);

/** The customer of the user of a test, as another browser has it, which keeps the cookies. */
async function customerOfUser(): Promise<string> {
  const page = await open(await pages.openBrowser('allowed'), { userId });
  await signIn(page);
  return renewedCustomerOf(page);
}

describe.each(WITHOUT_COOKIES)('a sign-in in a browser without cookies: %s', (situation) => {
  it('makes all tabs the user’s, over a reload and a restart, until the sign-out, and the next visitor is new', async () => {
    const user = await customerOfUser();
    const session: { userId?: string } = {};
    const browser = await pages.startProfile();
    const [tab, second] = [await open(browser, session, situation), await open(browser, session, situation)];
    const visitor = await renewedCustomerOf(tab);
    expect(await renewedCustomerOf(second)).toBe(visitor);

    session.userId = userId;
    expect(await signIn(tab)).toEqual({});
    expect(await renewedCustomerOf(tab)).toBe(user);
    await expect.poll(() => runIn(second, 'return tokens.entityId();')).toBe(user);
    const restarted = await pages.restart(browser);
    const next = await open(restarted, session, situation);
    expect(await resume(next)).toBe(user);
    expect(await renewedCustomerOf(next)).toBe(user);

    await signOut(next);
    const left = await renewedCustomerOf(next);
    expect([visitor, user]).not.toContain(left);
    expect(await renewedCustomerOf(next)).toBe(left);
  });

  it('of a first visit needs no visitor', async () => {
    const user = await customerOfUser();
    const browser = await pages.openBrowser();
    const page = await open(browser, { userId }, situation);
    await signIn(page);
    expect(await renewedCustomerOf(page)).toBe(user);
    const next = await open(browser, { userId }, situation);
    expect(await resume(next)).toBe(user);
  });
});

describe('a user without cookies', () => {
  it('is followed by a new visitor when the session at the backend has ended', async () => {
    const session: { userId?: string } = { userId };
    const browser = await pages.openBrowser();
    const page = await open(browser, session);
    await signIn(page);
    const user = await renewedCustomerOf(page);
    delete session.userId;
    const visitor = await renewedCustomerOf(page);
    expect(visitor).not.toBe(user);
    expect(await resume(page)).toBe(visitor);
  });

  it('stays signed in, and a visitor stays, if the backend fails', async () => {
    const browser = await pages.openBrowser();
    const page = await open(browser, { userId });
    const visitor = await renewedCustomerOf(page);
    await page.evaluate('setTimeout = (callback) => queueMicrotask(callback)'); // no pauses between the attempts
    const fail = () => page.page().route(ASSERTION, (route) => route.fulfill({ status: 400, json: { error: 'any' } }));
    await fail();
    await expect(signIn(page)).rejects.toThrow('400 any');
    expect(await renewedCustomerOf(page)).toBe(visitor);
    await page.page().unroute(ASSERTION);
    await routeBackend(page.page(), { userId });
    await signIn(page);
    const user = await renewedCustomerOf(page);
    await fail();
    await expect(runIn(page, 'return tokens.requestToken();')).rejects.toThrow('400 any');
    await page.page().unroute(ASSERTION);
    await routeBackend(page.page(), { userId });
    expect(await renewedCustomerOf(page)).toBe(user);
  });

  it('stays the user when the browser stops to keep the cookies', async () => {
    const browser = await pages.startProfile('allowed');
    const page = await open(browser, { userId });
    await signIn(page);
    const user = await renewedCustomerOf(page);
    const next = await open(await pages.restart(browser), { userId });
    expect(await renewedCustomerOf(next)).toBe(user);
  });

  it('is the user of cookies in a browser that keeps them', async () => {
    const browser = await pages.openBrowser('allowed');
    const session = { userId };
    const page = await open(browser, session);
    await signIn(page);
    const user = await renewedCustomerOf(page);
    const requests: string[] = [];
    page.page().on('request', (request) => requests.push(request.url()));
    expect(await renewedCustomerOf(page)).toBe(user);
    expect(requests).not.toContain(ASSERTION);
  });
});
