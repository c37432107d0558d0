import { leaveWithLock, oneSignInAtATime } from './leave.js';
import { request, waitAfter, withoutSlash } from './request.js';
import { asRequestError, type RequestError } from './request-error.js';
import type { TokenClient } from './token-client.js';
import { checkCookies, JWT_BEARER, noteOf, setBackend, signInWithoutCookies, storedOf } from './without-cookies.js';

const MAX_ATTEMPTS = 3;

interface SignInResponse {
  entity_id: string;
  linked_entity_id?: string;
}

export interface SignInOptions {
  /**
   * Whether the customer of a visitor becomes that of a new user. The organization needs `link_browsers: true`, and the
   * browser must keep the cookies.
   */
  link?: boolean;
}

/** What a sign-in did. */
export interface SignInResult {
  /**
   * The customer of the visitor, which this sign-in linked to a known user. Its conversations belong to the user now.
   */
  linkedEntityId?: string;
}

/**
 * Signs this browser in as the user of your session. The tokens of all tabs are the user's then. Call it after each
 * sign-in to your site, and reload the page then. If it rejects, `resumeSignIn` of the next load repeats the sign-in.
 */
export function signIn(tokens: TokenClient, backendUrl: string, options: SignInOptions = {}): Promise<SignInResult> {
  setBackend(tokens.settings, backendUrl);
  return oneSignInAtATime(() => {
    // before the request, because a response can change the cookies of a tab that is closed before its script goes on
    localStorage.setItem(noteOf(tokens.settings), 'begun');
    return sendAssertion(tokens, backendUrl, options);
  });
}

/**
 * Call it when a page loads, before its first token request. Repeats the sign-in of an earlier page. If the session has
 * ended, leaves this browser. A visitor stays. If it rejects, show the error and no chat.
 */
export function resumeSignIn(
  tokens: TokenClient,
  backendUrl: string,
  options: SignInOptions = {},
): Promise<SignInResult> {
  setBackend(tokens.settings, backendUrl);
  return oneSignInAtATime(async () => {
    if (!localStorage.getItem(noteOf(tokens.settings))) return {};
    try {
      return await sendAssertion(tokens, backendUrl, options);
    } catch (error) {
      if ((error as RequestError).error !== 'signed_out') throw error;
      await leaveWithLock(tokens);
      return {};
    }
  });
}

/** Signs out of your site and of this browser. The next visitor is a new customer. Reload the page then. */
export function signOut(tokens: TokenClient, backendUrl: string): Promise<void> {
  return oneSignInAtATime(async () => {
    await request(`${withoutSlash(backendUrl)}/sign-out`, { credentials: 'include' });
    await leaveWithLock(tokens);
  });
}

/** Each attempt needs an assertion of its own, because a lost response may have used it up. */
async function sendAssertion(
  tokens: TokenClient,
  backendUrl: string,
  { link = true }: SignInOptions,
): Promise<SignInResult> {
  const settings = { ...tokens.settings, groupId: undefined };
  const stored = storedOf(settings);
  if (stored?.isDropped) {
    discardOthers(tokens, await signInWithoutCookies(settings));
    return {};
  }
  let linkedEntityId: string | undefined;
  for (let attempt = 1; ; attempt++) {
    try {
      const { assertion } = await request(`${withoutSlash(backendUrl)}/assertion`, { credentials: 'include' });
      const body = {
        grant_type: JWT_BEARER,
        ...tokens.client,
        assertion,
        remember: 'browser',
        ...(link && { link: 'browser' }),
      };
      // `withCookies` takes the lock of the token requests, so that no token request of a tab replaces the new cookies
      const url = `${tokens.url}/v2/customer/token`;
      const response = await request<SignInResponse>(url, { body, withCookies: true, maxAttempts: 1 });
      linkedEntityId ??= response.linked_entity_id; // an attempt whose check failed may have linked it
      if (stored && !(await checkCookies(settings, response.entity_id))) await signInWithoutCookies(settings);
      discardOthers(tokens, response.entity_id);
      return linkedEntityId ? { linkedEntityId } : {};
    } catch (cause) {
      await waitAfter(asRequestError(cause), attempt < MAX_ATTEMPTS);
    }
  }
}

/**
 * Drops the tokens of other customers in all tabs. After a new sign-in also those of this customer: they have ended if
 * it was the customer of the visitor.
 */
function discardOthers(tokens: TokenClient, entityId: string): void {
  const note = noteOf(tokens.settings);
  const isRepeated = localStorage.getItem(note) === entityId;
  if (!isRepeated) localStorage.setItem(note, entityId);
  tokens.discardInAllTabs(isRepeated ? entityId : undefined);
}
