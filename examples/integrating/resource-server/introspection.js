const URL_OF_INTROSPECTION = process.env.INTROSPECTION_URL ?? 'http://localhost:3001/oauth2/introspect';
const ID = process.env.RESOURCE_SERVER_ID ?? 'chat-api';
const SECRET = process.env.RESOURCE_SERVER_SECRET ?? '';
const TIMEOUT_MS = 5_000;

/** Resolves to the claims of a token, and to undefined if the token is not valid. Rejects if the service is away. */
export async function introspect(token) {
  const response = await fetch(URL_OF_INTROSPECTION, {
    method: 'POST',
    body: new URLSearchParams({ token, client_id: ID, client_secret: SECRET }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`introspection failed: ${response.status}`);
  const claims = await response.json();
  return claims.active ? claims : undefined;
}
