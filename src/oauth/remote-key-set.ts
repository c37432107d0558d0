import type { webcrypto } from 'node:crypto';
import type { FetchImplementation, JWSHeaderParameters, JWTPayload, RemoteJWKSet } from 'jose';
import type { Clock } from '../platform/clock.js';
import { type JwtRules, jose, verifyForeignJwt } from './foreign-jwt.js';
import { OAuthError } from './oauth-error.js';

/** Finds the key that the header of a JWS names. */
type FindKey = (header: { alg?: string; kid?: string }) => Promise<webcrypto.CryptoKey>;

const MAX_AGE_MS = 600_000;
/** How long after a fetch an unknown key id causes no other fetch. */
const REFETCH_INTERVAL_MS = 60_000;
const FAILURE_PAUSE_MS = 1_000;

/**
 * The public keys that another authorization server publishes at its `jwks_uri` (RFC 7517 §5).
 *
 * The first token that needs the keys causes a fetch. The keys are used for 10 minutes. A token with an unknown key id
 * causes a fetch at most once a minute. All tokens that need a fetch at the same time share one. A fetch takes at most
 * 1 second, follows no redirect and reads at most 64 KiB. A set with a private or symmetric key is rejected. For 1
 * second after a failed fetch no other fetch starts. The keys of the last successful fetch stay in use until they are
 * 10 minutes old.
 *
 * @example
 * ```ts
 * @Injectable()
 * export class PartnerTokens {
 *   private readonly keySet: RemoteKeySet;
 *
 *   constructor(clock: Clock) {
 *     this.keySet = new RemoteKeySet('https://partner.example/keys', clock); // one for all requests
 *   }
 *
 *   async subjectOf(token: string): Promise<string | undefined> {
 *     const rules = { algorithms: ['ES256'], issuer: 'https://partner.example', audience: 'chat' };
 *     const payload = await this.keySet.verify(token, rules).catch((error) => {
 *       if (error instanceof OAuthError) throw error; // 503: the keys cannot be fetched
 *       throw OAuthError.invalidGrant(`partner token: ${error.code}`);
 *     });
 *     return payload.sub;
 *   }
 * }
 * ```
 */
export class RemoteKeySet {
  private readonly url: URL;
  private remote: RemoteJWKSet | undefined;
  private fetchedAt = Number.NEGATIVE_INFINITY;
  private failedAt = Number.NEGATIVE_INFINITY;
  private failure: unknown;

  /** @param jwksUri from the operator's configuration, never from a token */
  constructor(
    jwksUri: string,
    private readonly clock: Clock,
  ) {
    this.url = new URL(jwksUri);
  }

  /**
   * Verifies a JWT with each key of the set that its header matches. `iat` and `nbf` may be 30 s in the future; `exp` has
   * no tolerance, and no time is outside of the years 1970 to 2100.
   *
   * @throws an error of jose; OAuthError `temporarily_unavailable` while the keys cannot be fetched
   */
  verify(token: string, rules: JwtRules): Promise<JWTPayload> {
    return verifyForeignJwt(token, this.getKey, rules, this.clock);
  }

  /**
   * Finds the key that the header of a JWS names. `jwtVerify` of the package jose accepts this function as a key.
   *
   * The promise rejects with an error of jose if the set has no such key, and with OAuthError `temporarily_unavailable`
   * while the keys cannot be fetched.
   */
  readonly getKey: FindKey = async (header) => {
    this.remote ??= remoteJwkSet(this.url); // not in the constructor, because most processes never load jose for it
    const { JWKSNoMatchingKey, JWKSMultipleMatchingKeys, JOSENotSupported } = jose().errors;
    const findKey = () => (this.remote as RemoteJWKSet)(header as JWSHeaderParameters);
    try {
      if (!this.isWithin(this.fetchedAt, MAX_AGE_MS)) await this.fetch(this.remote);
      return await findKey().catch(async (error) => {
        const mayFetch = error instanceof JWKSNoMatchingKey;
        if (!mayFetch || this.isWithin(this.fetchedAt, REFETCH_INTERVAL_MS)) throw error;
        await this.fetch(this.remote as RemoteJWKSet); // the issuer may have published the key since the last fetch
        return findKey();
      });
    } catch (error) {
      const passed = [JWKSNoMatchingKey, JWKSMultipleMatchingKeys, JOSENotSupported];
      if (passed.some((each) => error instanceof each)) throw error;
      throw OAuthError.unavailable(error); // no fetch, or the key that the issuer publishes under this id is unusable
    }
  };

  private async fetch(remote: RemoteJWKSet): Promise<void> {
    if (this.isWithin(this.failedAt, FAILURE_PAUSE_MS)) throw this.failure;
    try {
      await remote.reload(); // shared by all that call it during a fetch
      this.fetchedAt = this.clock.now();
    } catch (error) {
      this.failedAt = this.clock.now();
      this.failure = error;
      throw error;
    }
  }

  /** Also false after the clock was set back; the keys are then fetched again. */
  private isWithin(since: number, milliseconds: number): boolean {
    const age = this.clock.now() - since;
    return age >= 0 && age < milliseconds;
  }
}

const FETCH_TIMEOUT_MS = 1_000;
/** Enough for more than 20 RSA keys with their certificates. */
const MAX_RESPONSE_BYTES = 64 * 1024;

/** `RemoteKeySet` decides when to fetch, because jose measures ages by the system's time and has no pause after a failure. */
function remoteJwkSet(url: URL): RemoteJWKSet {
  const { createRemoteJWKSet, customFetch } = jose();
  return createRemoteJWKSet(url, {
    cacheMaxAge: Number.POSITIVE_INFINITY,
    cooldownDuration: Number.POSITIVE_INFINITY,
    timeoutDuration: FETCH_TIMEOUT_MS, // also for the body
    [customFetch]: fetchPublicKeys,
  });
}

/** Adds to the fetch of jose a limit of bytes, and that one private key invalidates the set: others may be exposed too. */
async function fetchPublicKeys(...[url, options]: Parameters<FetchImplementation>): Promise<Response> {
  const response = await fetch(url, options);
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the issuer responded with status ${response.status}`);
  }
  const keySet: { keys?: unknown } | null = JSON.parse(await readText(response));
  if (!Array.isArray(keySet?.keys) || !keySet.keys.every(isPublicJwk))
    throw new Error('the response of the issuer is not a set of public keys');
  return Response.json(keySet);
}

/** Counts decompressed bytes, because a few compressed ones could expand to gigabytes. */
async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > MAX_RESPONSE_BYTES)
      throw new Error(`the response of the issuer has more than ${MAX_RESPONSE_BYTES} bytes`);
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks)); // without a byte order mark
}

/** Members that only a private or a symmetric key has (RFC 7518 §6). */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/** Whether a value is a JWK without private members. */
export function isPublicJwk(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !PRIVATE_MEMBERS.some((member) => member in value);
}
