// @ts-check

import { DEMO } from './demo.js';
import { byId } from './dom.js';

/** Links a response of the authorization page to the browser that asked for it (RFC 6749 §10.12). */
const STATE_ITEM = 'try-it state';

/** Gives the link to the authorization page its parameters. */
export function prepareSignIn() {
  const state = crypto.randomUUID();
  const link = /** @type {HTMLAnchorElement} */ (byId('sign-in'));
  const query = new URLSearchParams({
    response_type: 'token',
    client_id: DEMO.clientId,
    redirect_uri: `${DEMO.authUrl}/try/signed-in`,
    scope: 'customers:own',
    state,
  });
  link.href = `/?${query}`;
  link.addEventListener('click', () => sessionStorage.setItem(STATE_ITEM, state));
}

/** Whether a response has the state of this browser's last request. @param {string | null} state */
export function isOwnState(state) {
  return state !== null && state === sessionStorage.getItem(STATE_ITEM);
}
