import { isPublicJwkSet } from './public-jwk.js';

const FETCH_TIMEOUT_MS = 1_000;
/** Enough for more than 20 RSA keys with their certificates. */
const MAX_RESPONSE_BYTES = 64 * 1024;

/**
 * Fetches a JWK Set of public keys. Redirects are not followed, and only a complete response with status 200 counts.
 *
 * @throws Error whose message says what is wrong with the response
 */
export async function fetchJwks(url: string): Promise<{ keys: object[] }> {
  const response = await fetch(url, {
    headers: { Accept: 'application/jwk-set+json, application/json' },
    redirect: 'manual',
    signal: AbortSignal.timeout(FETCH_TIMEOUT_MS), // The timeout covers the body too.
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the issuer responded with status ${response.status}`);
  }
  const keySet: unknown = JSON.parse(await readText(response));
  if (!isPublicJwkSet(keySet)) throw new Error('the response of the issuer is not a set of public keys');
  return keySet;
}

/** Limits the size of the decompressed body. */
async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > MAX_RESPONSE_BYTES)
      throw new Error(`the response of the issuer has more than ${MAX_RESPONSE_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
