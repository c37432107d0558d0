import { bearer, fetchWithRetries, isToken, readResult } from '../fetch-with-retries.js';

/** Resolves to the id of the customer if a page's token is valid for this organization, otherwise to undefined. */
export async function checkToken({ url }, token, organizationId) {
  if (!isToken(token)) return;
  const response = await fetchWithRetries(`${url}/v2/customer/info`, { headers: bearer(token) });
  if (response.status === 401) return;
  const info = await readResult(response, 'token not checked');
  return info.organization_id === organizationId ? info.entity_id : undefined;
}

/** Ends one customer token, for example that of a sign-in whose user signs out. */
export async function endToken({ url }, token) {
  const init = { method: 'DELETE', headers: bearer(token) };
  const response = await fetchWithRetries(`${url}/v2/customer/token`, init);
  if (response.status !== 401) await readResult(response, 'token not ended'); // after 401, the token has no effect
}
