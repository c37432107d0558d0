import { bearer, fetchWithRetries, readResult } from '../fetch-with-retries.js';

/**
 * Resolves to the token response for a user of your system. `userId` is your own id of the user. A job for which no user
 * waits can set `maxWaitSeconds` to more than 10.
 */
export async function customerToken({ url, clientId, session, maxWaitSeconds }, userId) {
  const external_id = externalId(userId);
  const agentToken = await session.token();
  let response = await send(agentToken);
  if (response.status === 401) response = await send(await session.token(agentToken));
  return readResult(response, 'no customer token');

  function send(token) {
    const grant = { grant_type: 'agent_token', response_type: 'token', client_id: clientId };
    const body = JSON.stringify({ ...grant, external_id });
    const init = { method: 'POST', headers: bearer(token), body };
    return fetchWithRetries(`${url}/v2/customer/token`, init, maxWaitSeconds);
  }
}

/**
 * The text of your id of a user. Without the check, a missing id would be "undefined", one customer for all users.
 * JavaScript rounds integers that are not safe, so two users could become one customer.
 */
export function externalId(userId) {
  if (typeof userId === 'string' || Number.isSafeInteger(userId)) return String(userId);
  throw Object.assign(new Error('userId: no string and no safe integer'), { error: 'no_user_id' });
}
