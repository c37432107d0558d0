import { leaveThisBrowser } from './leave.js';
import { request, waitAfter } from './request.js';
import { asRequestError } from './request-error.js';
import type { TokenClient } from './token-client.js';

const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const MAX_ATTEMPTS = 3;

export interface SignInOptions {
  /** Whether the customer of a visitor becomes that of a new user. The organization needs `link_browsers: true`. */
  link?: boolean;
}

/**
 * Signs this browser in as the user of your session. The tokens of all tabs are the user's then. Each attempt needs an
 * assertion of its own, because a lost response may have used it up.
 */
export async function signIn(
  tokens: TokenClient,
  backendUrl: string,
  { link = true }: SignInOptions = {},
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const { assertion } = await request(`${backendUrl}/assertion`, { credentials: 'include' });
      const body = {
        grant_type: GRANT,
        ...tokens.client,
        assertion,
        remember: 'browser',
        ...(link && { link: 'browser' }),
      };
      // `withCookies` takes the lock of the token requests, so that no token request of a tab replaces the new cookies
      await request(`${tokens.url}/v2/customer/token`, { body, withCookies: true, maxAttempts: 1 });
      return tokens.discardInAllTabs();
    } catch (cause) {
      await waitAfter(asRequestError(cause), attempt < MAX_ATTEMPTS);
    }
  }
}

/** Signs out of your site and of this browser. The next visitor is a new customer. */
export async function signOut(tokens: TokenClient, backendUrl: string): Promise<void> {
  await request(`${backendUrl}/sign-out`, { credentials: 'include' });
  await leaveThisBrowser(tokens);
}
