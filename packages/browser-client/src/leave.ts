import { request } from './request.js';
import { RequestError } from './request-error.js';
import type { TokenClient } from './token-client.js';

/** Leaves on this browser only. Its next token is that of a new customer. Covers all groups of the organization. */
export async function leaveThisBrowser(tokens: TokenClient): Promise<void> {
  await request(`${tokens.url}/forget`, { body: tokens.client, withCookies: true });
  tokens.discardInAllTabs();
}

/** Logs the customers of these token clients out on all devices and removes them from all browsers. */
export async function logOutEverywhere(...clients: TokenClient[]): Promise<void> {
  for (const tokens of clients) {
    await endSessions(tokens, tokens.validToken);
    tokens.expectNewCustomer(); // otherwise a call of this page could reload it before the next group
  }
  clients[0]?.discardInAllTabs(); // after the last group, because other tabs reload
}

async function endSessions(tokens: TokenClient, oldToken?: string): Promise<void> {
  const bearer = oldToken ?? (await tokens.requestToken()).access_token;
  try {
    await request(`${tokens.url}/end_sessions`, { body: { browsers: true }, bearer, withCookies: true });
  } catch (error) {
    if (!(error instanceof RequestError) || error.status !== 401) throw error;
    // After a lost response, 401 means that the lost request has succeeded. Otherwise the token was not valid any more.
    if (error.mayHaveSucceeded) return;
    if (!oldToken) throw error;
    await endSessions(tokens);
  }
}
