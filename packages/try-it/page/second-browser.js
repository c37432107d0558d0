// @ts-check
/** The second browser: it creates the verifier, shows the challenge, and redeems the code of the first browser. */

import { DEMO, fragmentOf, lastCustomer, startPage, TOKEN_PATH, takeFragment } from './demo.js';
import { byId, code, element, onClick, onSubmit, showResult } from './dom.js';
import { showIdentity } from './identity-view.js';
import { linkView } from './link-view.js';
import { codeIn } from './links.js';
import { send } from './service.js';
import { helper, runStep } from './session.js';
import { oneTabAtATime } from './token-helper.js';
import { challengeOf, codeOf, createVerifier } from './verifier.js';

/** Stored until the code is redeemed, because a scanned link opens another tab. It is useless without the code. */
const VERIFIER_ITEM = 'try-it verifier';
const CONFLICT_STATUS = 409;

/** @type {string | undefined} */
let receivedCode;

async function ask() {
  const verifier = localStorage.getItem(VERIFIER_ITEM) ?? createVerifier();
  localStorage.setItem(VERIFIER_ITEM, verifier);
  const challenge = await challengeOf(verifier);
  byId('ask-link').replaceChildren(
    linkView(`${DEMO.authUrl}/try#challenge=${challenge}`, 'link for the first browser'),
  );
  byId('ask-code').textContent = codeOf(challenge);
  const text = `code_verifier:  stays in this browser\n\ncode_challenge: BASE64URL(SHA-256(code_verifier))\n= ${challenge}`;
  byId('ask-wire').replaceChildren(element('pre', {}, text));
}

/** @param {URLSearchParams} fragment */
async function receive(fragment) {
  receivedCode = codeIn(fragment);
  if (receivedCode !== undefined) return redeem();
  const hint = 'This is not a link of the first browser. Its link contains “#code=”.';
  showResult(byId('redeem-result'), 'problem', hint);
}

/** @param {{ replace?: boolean }} [more] */
async function redeem(more = {}) {
  byId('conflict').hidden = true;
  await runStep('redeem', async (show) => {
    const body = {
      grant_type: 'identity_token',
      client_id: DEMO.clientId,
      code: receivedCode,
      code_verifier: localStorage.getItem(VERIFIER_ITEM),
      remember: 'browser',
      ...more,
    };
    const exchange = await oneTabAtATime(() => send({ method: 'POST', path: TOKEN_PATH, body }));
    if (exchange.response?.status === CONFLICT_STATUS) askToReplace();
    const token = show(exchange);
    localStorage.removeItem(VERIFIER_ITEM);
    helper.drop();
    showIdentity(/** @type {any} */ (token));
    return [
      'This browser is now customer ',
      code(token.entity_id),
      ', like the first browser. It has cookies of its own.',
    ];
  });
}

function askToReplace() {
  byId('conflict').hidden = false;
  byId('conflict-title').focus();
}

function cancel() {
  byId('conflict').hidden = true;
  showResult(byId('redeem-result'), 'success', 'This browser stays its own customer. The code was not redeemed.');
}

async function comeBack() {
  await runStep('return', async () => {
    helper.drop();
    const { entity_id } = /** @type {any} */ (await helper.token());
    return ['The cookies lead to customer ', code(entity_id), '.'];
  });
}

void startPage(async () => {
  onSubmit('redeem-form', () => receive(fragmentOf(/** @type {HTMLInputElement} */ (byId('code-link')).value)));
  onClick('replace', () => redeem({ replace: true }));
  onClick('cancel', cancel);
  onClick('return', comeBack);
  const receiveLink = () => {
    if (location.hash.includes('=')) void receive(takeFragment());
  };
  addEventListener('hashchange', receiveLink);
  byId('same-browser').hidden = lastCustomer() === null;
  await ask();
  receiveLink();
});
