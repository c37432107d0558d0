import { bearer, fetchWithRetries, readResult } from '../fetch-with-retries.js';
import { externalId } from './customer-token.js';

/** Resolves to everything that the service stores about a user: rows, by the name of their table. */
export async function exportUser(options, userId) {
  return (await send(options, 'export', { external_id: externalId(userId) })).tables;
}

/** Ends all tokens of a user, in all browsers and on all devices. An assertion that was made before still signs in. */
export async function signOutEverywhere(options, userId) {
  await unlessUnknown(send(options, 'end_sessions', { external_id: externalId(userId), browsers: true }));
}

/** The same for a customer by id, for example a visitor who has lost a device. */
export async function endSessions(options, customerId) {
  await send(options, 'end_sessions', { customer_id: customerId, browsers: true });
}

/** Resolves to the id of the user's customer, or to undefined for a user who never was a customer or was erased. */
export async function customerIdOf(options, userId) {
  return (await unlessUnknown(send(options, 'export', { external_id: externalId(userId) })))?.entity_id;
}

/** Erases a customer. Store the id before: after a temporary error call the function again, also days later. */
export async function eraseCustomer(options, customerId) {
  await send(options, 'erase', { customer_id: customerId });
}

/**
 * Resolves to a token that moves a customer to a new device. The device has the client `clientId`, and created
 * `challenge`.
 */
export async function transferToken(options, customerId, clientId, challenge) {
  const customer = { bearer_type: 'agent', customer_id: customerId };
  const parameters = { ...customer, client_id: clientId, code_challenge: challenge };
  return (await send(options, 'identity_transfer', parameters)).identity_transfer_token;
}

const unlessUnknown = (request) =>
  request.catch((error) => {
    if (error.hint !== 'external_id: unknown') throw error;
  });

async function send({ url, session, maxWaitSeconds }, action, parameters) {
  const request = (token) => {
    const init = { method: 'POST', headers: bearer(token), body: JSON.stringify(parameters) };
    return fetchWithRetries(`${url}/v2/customer/${action}`, init, maxWaitSeconds);
  };
  const agentToken = await session.token();
  const response = await request(agentToken);
  return readResult(response.status === 401 ? await request(await session.token(agentToken)) : response, action);
}
