import type { JsonRequest } from './fetch-json.js';
import type { Credentials } from './options.js';

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const ASSERTION_TIMEOUT_MS = 5_000;

/** The function of the application did not resolve to an assertion. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError';
}

/** A secret is in the header. An assertion is in a body, because access logs contain the URL. */
export async function feedRequest(
  url: URL,
  parameters: Record<string, string>,
  credentials: Credentials,
): Promise<Pick<JsonRequest, 'url' | 'headers' | 'body'>> {
  if ('assertion' in credentials) {
    const { id: client_id, assertion } = credentials;
    const client_assertion = await assertionOf(assertion);
    const proof = { client_id, client_assertion_type: ASSERTION_TYPE, client_assertion };
    return { url, body: new URLSearchParams({ ...parameters, ...proof }) };
  }
  const withQuery = new URL(url);
  for (const [name, value] of Object.entries(parameters)) withQuery.searchParams.set(name, value);
  return { url: withQuery, headers: { Authorization: basic(credentials) } };
}

async function assertionOf(assertion: () => Promise<string>): Promise<string> {
  const limit = AbortSignal.timeout(ASSERTION_TIMEOUT_MS);
  const timeout = new Promise<never>((_, reject) => {
    limit.addEventListener('abort', () => reject(limit.reason));
  });
  try {
    return (await Promise.race([assertion(), timeout])).trim(); // a file may end with a line break
  } catch (cause) {
    throw new AssertionError('no assertion', { cause });
  }
}

/** Both parts are form-urlencoded (RFC 6749 §2.3.1). */
function basic({ id, secret }: { id: string; secret: string }): string {
  return `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`;
}
