import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

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
const LOAD_TIMEOUT_MS = 1_000;
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

/**
 * The keys in a file, which its owner replaces. A file that is broken or gone changes nothing. A load takes at most 1
 * second. While a read of a file system hangs, no other read begins, because each one occupies a thread of the process.
 */
export function keysInFile(folder: string | undefined, file: string): KeySource {
  let reading: Promise<object> | undefined;
  const load = () => {
    if (folder === undefined) throw new Error('JWKS_DIR is not set');
    reading ??= readKeys(join(folder, file)).finally(() => {
      reading = undefined;
    });
    return Promise.race([reading, timeout()]);
  };
  return { name: `JWKS_DIR: ${file}`, load, maxAgeMs: FILE_MAX_AGE_MS, keepsKeys: true };
}

async function timeout(): Promise<never> {
  await setTimeout(LOAD_TIMEOUT_MS, undefined, { ref: false });
  throw new Error(`no result within ${LOAD_TIMEOUT_MS} ms`);
}

async function readKeys(path: string): Promise<object> {
  // without O_NONBLOCK, a named pipe would not open until another process writes to it
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => {
    throw new Error('the file cannot be read');
  });
  try {
    if (!(await handle.stat()).isFile()) throw new Error('it is not a file');
    return parseKeys(await readBytes(handle.createReadStream({ autoClose: false })));
  } finally {
    await handle.close();
  }
}

async function fetchKeys(url: string): Promise<object> {
  const response = await fetch(url, {
    headers: { accept: 'application/jwk-set+json, application/json' },
    redirect: 'manual',
    signal: AbortSignal.timeout(LOAD_TIMEOUT_MS), // also for the body
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the issuer responded with status ${response.status}`);
  }
  return parseKeys(await readBytes(response.body ?? []));
}

/** Counts decompressed bytes, because a few compressed ones could expand to gigabytes. */
async function readBytes(body: AsyncIterable<Uint8Array> | []): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MAX_KEY_SET_BYTES) throw new Error(`it has more than ${MAX_KEY_SET_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** One private key invalidates the set: others may be exposed too. */
function parseKeys(bytes: Buffer): object {
  const keySet = parseJson(new TextDecoder().decode(bytes)); // without a byte order mark
  const keys = (keySet as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys) || !keys.every(isPublicJwk)) throw new Error('it is not a set of public keys');
  return { keys: signatureKeys(keys) };
}

/** The bundle of a SPIFFE trust domain has uses of its own, and certificates of X.509 among its keys (SPIFFE §4). */
export function signatureKeys(keys: readonly object[]): object[] {
  const useOf = (key: object): unknown => Reflect.get(key, 'use');
  return keys
    .filter((key) => useOf(key) !== 'x509-svid')
    .map((key) => (useOf(key) === 'jwt-svid' ? { ...key, use: 'sig' } : key));
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
