// @ts-check
/**
 * Step 5, in the first browser: it sees a challenge, and creates a code that only the creator of the challenge can use.
 */

import { DEMO, fragmentOf, SECOND_BROWSER_URL, takeFragment } from './demo.js';
import { byId, code, element, onClick, onSubmit, showResult } from './dom.js';
import { markStep } from './flows-view.js';
import { linkView } from './link-view.js';
import { challengeIn } from './links.js';
import { send } from './service.js';
import { helper, runStep } from './session.js';
import { codeOf } from './verifier.js';

/** @type {string | undefined} */
let challenge;

export function connectMoveStep() {
  byId('second-link').replaceChildren(linkView(SECOND_BROWSER_URL, 'page for the second browser'));
  onSubmit('move-form', () => receive(fragmentOf(/** @type {HTMLInputElement} */ (byId('move-link')).value)));
  onClick('allow', allow);
  onClick('deny', deny);
  const receiveLink = () => {
    if (location.hash.includes('=')) receive(takeFragment());
  };
  addEventListener('hashchange', receiveLink);
  receiveLink();
}

/** @param {URLSearchParams} fragment */
function receive(fragment) {
  challenge = challengeIn(fragment);
  byId('code-link').replaceChildren();
  byId('approval').hidden = challenge === undefined;
  if (challenge === undefined) {
    const hint = 'This is not a link of the second browser. Its link ends with “#challenge=” and 43 characters.';
    return showResult(byId('move-result'), 'problem', hint);
  }
  byId('move-result').replaceChildren();
  markStep('move');
  byId('approval-code').textContent = codeOf(challenge);
  byId('approval-title').focus();
}

async function allow() {
  await runStep('move', async (show) => {
    const { access_token, entity_id } = /** @type {any} */ (await helper.token());
    const body = {
      bearer_type: 'customer',
      client_id: DEMO.clientId,
      code_challenge: challenge,
      code_challenge_method: 'S256',
    };
    const path = '/v2/customer/identity_transfer';
    const response = show(await send({ method: 'POST', path, body, token: access_token }));
    byId('approval').hidden = true;
    const url = `${SECOND_BROWSER_URL}#${new URLSearchParams({ code: response.identity_transfer_token })}`;
    byId('code-link').replaceChildren(
      element('p', {}, 'Open this link in the second browser:'),
      linkView(url, 'code for the second browser'),
    );
    return ['The code leads to customer ', code(entity_id), ', works once, and only in the second browser.'];
  });
}

function deny() {
  challenge = undefined;
  byId('approval').hidden = true;
  showResult(byId('move-result'), 'success', 'Denied. This browser sent nothing.');
}
