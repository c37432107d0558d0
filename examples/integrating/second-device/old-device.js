import { RequestError, request } from '../browser/request.js';

/**
 * Step 3, on the old device, after its user has agreed. `tokens` is the `TokenClient` of the page. `clientId` and
 * `challenge` are those of the new device. If the transfer token expires, call the function again.
 */
export async function approveMove(tokens, clientId, challenge) {
  const customerId = customerOf(await tokens.get());
  const { access_token: bearer } = await tokens.requestToken(); // of its own: a log-out does not end it
  if (customerOf(bearer) !== customerId) throw new RequestError({ error: 'other_customer' }); // the browser keeps no cookies
  const body = { bearer_type: 'customer', client_id: clientId, code_challenge: challenge };
  const result = await request(`${tokens.url}/identity_transfer`, { body, bearer });
  return { transferToken: result.identity_transfer_token, expiresInSeconds: result.expires_in, bearer };
}

/** Ends what the new device received. `bearer` is that of `approveMove`, and may have expired. */
export async function endMove(tokens, bearer) {
  await request(`${tokens.url}/token`, { method: 'DELETE', bearer });
}

function customerOf(token) {
  const [, claims] = token.split('.');
  return JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))).sub;
}
