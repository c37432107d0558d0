import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Where a `KeySet` loads its keys. */
export interface KeySource {
  /** For the log. */
  name: string;
  /** Returns a JWK Set of public keys. */
  load(): Promise<object>;
  /** How long loaded keys are used. */
  maxAgeMs: number;
  /** Whether older keys stay in use while no load succeeds. */
  keepsKeys: boolean;
}

const REMOTE_MAX_AGE_MS = 600_000;
const FILE_MAX_AGE_MS = 2_000;
const FETCH_TIMEOUT_MS = 1_000;
/** Enough for more than 20 RSA keys with their certificates. */
const MAX_KEY_SET_BYTES = 64 * 1024;

/**
 * The keys that an issuer publishes at its `jwks_uri`. A fetch takes at most 1 second and follows no redirect.
 *
 * @param url from the operator's configuration, never from a token
 */
export function remoteKeys(url: string): KeySource {
  return { name: url, load: () => fetchKeys(url), maxAgeMs: REMOTE_MAX_AGE_MS, keepsKeys: false };
}

/** The keys in a file, which its owner replaces. A file that is broken or gone changes nothing. */
export function keysInFile(folder: string | undefined, file: string): KeySource {
  const load = async () => {
    if (folder === undefined) throw new Error('JWKS_DIR is not set');
    const path = join(folder, file);
    const { size } = await stat(path).catch(() => ({ size: -1 }));
    if (size < 0) throw new Error('the file cannot be read');
    if (size > MAX_KEY_SET_BYTES) throw new Error(`the file has more than ${MAX_KEY_SET_BYTES} bytes`);
    return parseKeys(await readFile(path));
  };
  return { name: `JWKS_DIR: ${file}`, load, maxAgeMs: FILE_MAX_AGE_MS, keepsKeys: true };
}

async function fetchKeys(url: string): Promise<object> {
  const response = await fetch(url, {
    headers: { accept: 'application/jwk-set+json, application/json' },
    redirect: 'manual',
    signal: AbortSignal.timeout(FETCH_TIMEOUT_MS), // also for the body
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the issuer responded with status ${response.status}`);
  }
  return parseKeys(await readBytes(response));
}

/** Counts decompressed bytes, because a few compressed ones could expand to gigabytes. */
async function readBytes({ body }: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > MAX_KEY_SET_BYTES)
      throw new Error(`the response of the issuer has more than ${MAX_KEY_SET_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** One private key invalidates the set: others may be exposed too. */
function parseKeys(bytes: Buffer): object {
  const keySet = parseJson(new TextDecoder().decode(bytes)); // without a byte order mark
  const keys = (keySet as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys) || !keys.every(isPublicJwk)) throw new Error('it is not a set of public keys');
  return keySet as object;
}

/** An error of `JSON.parse` quotes the text, which may have a private key. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('it is not JSON');
  }
}

/** Members that only a private or a symmetric key has (RFC 7518 §6). */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/** Whether a value is a JWK without private members. */
export function isPublicJwk(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !PRIVATE_MEMBERS.some((member) => member in value);
}
