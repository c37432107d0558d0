// @ts-check
/** Step 7: the visitor signs in as a user of the shop, and signs out. */
import { DEMO, lastCustomer, storeLastCustomer, TOKEN_PATH } from './demo.js';
import { code, onClick } from './dom.js';
import { forgetBrowser } from './end-steps.js';
import { showIdentity } from './identity-view.js';
import { send } from './service.js';
import { helper, runStep } from './session.js';
import { oneTabAtATime } from './token-helper.js';

const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const USER = 'user-4711';

export function connectUserStep() {
  onClick('user-sign-in', () => runStep('user', signIn));
  onClick('user-sign-out', () => runStep('user', signOut));
}

/** @param {(exchange: import('./service.js').Exchange) => Record<string, any>} show */
async function signIn(show) {
  const before = lastCustomer();
  const { assertion } = show(await send({ method: 'POST', path: '/try/assertion', body: { external_id: USER } }));
  const client = { client_id: DEMO.clientId, organization_id: DEMO.organizationId };
  const body = { grant_type: GRANT, ...client, assertion, remember: 'browser', link: 'browser' };
  // the lock of the token requests: a token request of another tab would replace the new cookies
  const token = show(await oneTabAtATime(() => send({ method: 'POST', path: TOKEN_PATH, body })));
  helper.drop();
  storeLastCustomer(token.entity_id);
  showIdentity(/** @type {any} */ (token));
  return before === token.entity_id
    ? [USER, ' is customer ', code(token.entity_id), ', whom this browser had before.']
    : [USER, ' is customer ', code(token.entity_id), ', on every device. So is this browser now.'];
}

/** @param {(exchange: import('./service.js').Exchange) => Record<string, any>} show */
async function signOut(show) {
  await forgetBrowser(show);
  return ['Signed out. The next visitor of this browser is a new customer.'];
}
