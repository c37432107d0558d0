// @ts-check
/** The signed-in device: sends the customer's decision with the customer's access token. */
import { byId, DEMO, post, showResult } from './requests.js';

const field = /** @type {HTMLInputElement} */ (byId('user-code'));
const token = signIn();

/** A code in a fragment never reaches the log of a server. */
field.value = new URLSearchParams(location.hash.slice(1)).get('user_code') ?? '';
history.replaceState(null, '', location.pathname);

async function signIn() {
  const request = { grant_type: 'cookie', response_type: 'token', ...DEMO };
  const { status, body } = await post('/v2/customer/token', request);
  if (status !== 200) throw new Error(`The service responded with ${status} ${body.error}.`);
  byId('identity').textContent = `This browser is customer ${body.entity_id}.`;
  return body.access_token;
}

/** @param {'approve' | 'deny'} decision */
async function decide(decision) {
  const headers = { Authorization: `Bearer ${await token}` };
  const request = { user_code: field.value, decision };
  const { status, body } = await post('/v2/customer/device_approval/decide', request, headers);
  if (status === 200) {
    const outcome =
      decision === 'approve' ? 'The new device gets a token for this customer.' : 'You denied the request.';
    showResult('success', outcome);
  } else showResult('problem', body.error_hint ?? `The service responded with ${status} ${body.error}.`);
}

byId('decision').addEventListener('submit', (event) => {
  event.preventDefault();
  void decide('approve');
});
byId('deny').addEventListener('click', () => void decide('deny'));
token.catch((error) => showResult('problem', error.message));
