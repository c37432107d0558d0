import { fetchWithRetries, readResult } from '../fetch-with-retries.js';

/** Resolves to everything that the service stores about a user: rows, by the name of their table. */
export async function exportUser(options, userId) {
  const tables = {};
  let after;
  do {
    const page = await send(options, 'export', { external_id: String(userId), after });
    for (const [name, rows] of Object.entries(page.tables)) tables[name] = [...(tables[name] ?? []), ...rows];
    after = page.next;
  } while (after);
  return tables;
}

/** Ends all tokens of a user, in all browsers and on all devices. */
export async function signOutEverywhere(options, userId) {
  await send(options, 'end_sessions', { external_id: String(userId), browsers: true });
}

/** Erases a user. An erased user has no external_id, so a repetition needs the customer_id. */
export async function eraseUser(options, userId) {
  try {
    const { entity_id } = await send(options, 'export', { external_id: String(userId) });
    await send(options, 'erase', { customer_id: entity_id });
  } catch (error) {
    if (error.hint !== 'external_id: unknown') throw error; // erased before, or never a customer
  }
}

async function send({ url, session, maxWaitSeconds }, action, parameters) {
  const request = (bearer) => {
    const headers = { Authorization: `Bearer ${bearer}` };
    const init = { method: 'POST', headers, body: JSON.stringify(parameters) };
    return fetchWithRetries(`${url}/v2/customer/${action}`, init, maxWaitSeconds);
  };
  const agentToken = await session.token();
  const response = await request(agentToken);
  return readResult(response.status === 401 ? await request(await session.token(agentToken)) : response, action);
}
