import { readFile } from 'node:fs/promises';

const URL_OF_INTROSPECTION = process.env.INTROSPECTION_URL ?? 'http://localhost:3001/oauth2/introspect';
const ID = process.env.RESOURCE_SERVER_ID ?? 'chat-api';
const { ASSERTION_FILE, RESOURCE_SERVER_SECRET = '' } = process.env;
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const TIMEOUT_MS = 5_000;

/** Resolves to the claims of a token, and to undefined if the token is not valid. Rejects if the service is away. */
export async function introspect(token) {
  const response = await fetch(URL_OF_INTROSPECTION, {
    method: 'POST',
    body: new URLSearchParams({ token, client_id: ID, ...(await proof()) }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`introspection failed: ${response.status}`);
  const claims = await response.json();
  return claims.active ? claims : undefined;
}

/** The file is read again each time, because the platform replaces it. */
async function proof() {
  if (!ASSERTION_FILE) return { client_secret: RESOURCE_SERVER_SECRET };
  const client_assertion = (await readFile(ASSERTION_FILE, 'utf8')).trim();
  return { client_assertion_type: ASSERTION_TYPE, client_assertion };
}
