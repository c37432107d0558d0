import type { TokenSource } from './move.js';
import { oneTabAtATime, request } from './request.js';
import { RequestError, withRequestErrors } from './request-error.js';
import type { TokenClient } from './token-client.js';
import { hasCustomer, leaveStored, removeNote, revokeStored, storedOf } from './without-cookies.js';

/** Otherwise a tab could get an assertion, and sign in with it after another tab has left. */
export function oneSignInAtATime<Result>(work: () => Promise<Result>): Promise<Result> {
  return withRequestErrors(() => oneTabAtATime('customer-sign-in', work));
}

/**
 * Leaves on this browser only, and ends the sign-in of a user here. The next token is that of a new customer. Covers
 * all groups of the organization.
 */
export function leaveThisBrowser(tokens: TokenClient): Promise<void> {
  return oneSignInAtATime(() => leaveWithLock(tokens));
}

/** The caller has the lock of sign-ins. */
export async function leaveWithLock(tokens: TokenClient): Promise<void> {
  await request(`${tokens.url}/v2/customer/forget`, { body: tokens.client, withCookies: true });
  await leaveStored(tokens.settings);
  removeNote(tokens.settings);
  tokens.discardInAllTabs();
}

/**
 * Logs the customers of these token clients out on all devices and removes them from all browsers. Ends the sign-in of
 * a user in this browser. Rejects with `moved_browser` in a browser that got its customer by a move or has lost its
 * cookies.
 */
export function logOutEverywhere(...clients: TokenClient[]): Promise<void> {
  return oneSignInAtATime(async () => {
    let hasLeft = false;
    try {
      for (const tokens of clients) {
        await logOut(tokens);
        removeNote(tokens.settings);
        hasLeft = true;
        tokens.expectNewCustomer(); // otherwise a call of this page could reload it before the next group
      }
    } finally {
      if (hasLeft) clients[0]?.discardInAllTabs(); // after the last group, because other tabs reload
    }
  });
}

/**
 * Ends all tokens of the customer, for a lost phone or a copied token. Devices that got the customer by a move lose it.
 */
export async function logOutMovedDevices(tokens: TokenClient): Promise<void> {
  await endSessions(tokens, {}, tokens.validToken);
  tokens.discard();
}

/**
 * Ends the access tokens of this page's browser, and what other devices have received with this token, which may have
 * expired. The browser keeps the customer: the pages get new tokens.
 */
export async function endToken(tokens: Pick<TokenSource, 'url' | 'discard'>, bearer: string): Promise<void> {
  await request(`${tokens.url}/v2/customer/token`, { method: 'DELETE', bearer });
  tokens.discard?.(bearer);
}

async function logOut(tokens: TokenClient): Promise<void> {
  const { settings } = tokens;
  if (!settings.withoutCookies) return endSessions(tokens, { browsers: true }, tokens.validToken);
  // the first token decides whether there are cookies
  const token = tokens.validToken ?? (await tokens.requestToken()).access_token;
  const stored = storedOf(settings);
  // the session of the first device has no cookies, and ends by its refresh token
  const isFirst = stored?.refreshToken !== undefined && !stored.isMoved;
  await endSessions(tokens, isFirst ? {} : { browsers: true }, token);
  if (hasCustomer(stored)) await revokeStored(settings);
}

async function endSessions(tokens: TokenClient, body: object, oldToken?: string): Promise<void> {
  const bearer = oldToken ?? (await tokens.requestToken()).access_token;
  try {
    await request(`${tokens.url}/v2/customer/end_sessions`, { body, bearer, withCookies: true });
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    if (error.hint?.startsWith('browsers:')) error.error = 'moved_browser';
    if (error.status !== 401) throw error;
    // After a lost response, 401 means that the lost request has succeeded. Otherwise the token was not valid any more.
    if (error.mayHaveSucceeded) return;
    if (!oldToken) throw error;
    await endSessions(tokens, body);
  }
}
