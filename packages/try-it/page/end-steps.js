// @ts-check
/** Steps 8 and 9: ending tokens, and forgetting the browser. */

import { DEMO, storeLastCustomer } from './demo.js';
import { onClick } from './dom.js';
import { showIdentity } from './identity-view.js';
import { send } from './service.js';
import { helper, runStep } from './session.js';
import { oneTabAtATime } from './token-helper.js';

const UNAUTHORIZED_STATUS = 401;

export function connectEndSteps() {
  onClick('end-token', () =>
    end(
      { method: 'DELETE', path: '/v2/customer/token' },
      'This token has ended, and so has all that came from it, such as the second browser of step 5.',
    ),
  );
  const all = /** @type {const} */ ({ method: 'POST', path: '/v2/customer/end_sessions', body: {} });
  onClick('end-sessions', () => end(all, 'All tokens of this customer have ended, on every device.'));
  onClick('forget', forget);
}

/**
 * Ends something with the token, and shows that the service no longer accepts the token.
 * @param {import('./service.js').ServiceRequest} request
 * @param {string} result
 */
async function end(request, result) {
  await runStep('end', async (show) => {
    const { access_token: token } = /** @type {any} */ (await helper.token());
    show(await send({ ...request, token }));
    const check = await send({ method: 'GET', path: '/v2/customer/info', token });
    if (check.response?.status !== UNAUTHORIZED_STATUS) return show(check) && ['The token is still valid.'];
    helper.drop();
    showIdentity(undefined);
    showAlso(check, show);
    return [result, ' The service now responds to it with 401. The cookies still lead to the customer.'];
  });
}

/** @param {(exchange: import('./service.js').Exchange) => unknown} show */
export async function forgetBrowser(show) {
  const body = { client_id: DEMO.clientId, organization_id: DEMO.organizationId };
  // the lock of the token requests: the response to a token request would set the cookies again
  show(await oneTabAtATime(() => send({ method: 'POST', path: '/v2/customer/forget', body })));
  helper.drop();
  storeLastCustomer(undefined);
  showIdentity(undefined);
}

async function forget() {
  await runStep('forget', async (show) => {
    await forgetBrowser(show);
    return ['The service has forgotten this browser and deleted its cookies. Begin again with step 1.'];
  });
}

/** @param {import('./service.js').Exchange} exchange @param {(exchange: any) => unknown} show */
function showAlso(exchange, show) {
  try {
    show(exchange);
  } catch {
    // the error response is the expected one
  }
}
