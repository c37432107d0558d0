/** Where the revocations come from, and what happens without them. */
export interface RevocationOptions {
  /** The URL of `GET /oauth2/revocations` on the management port of the service. */
  url: string;
  /** The id of the resource server in the registry of the service. */
  id: string;
  secret: string;
  /** How old the list of revocations may be, in seconds: 5 to 3,600. */
  maxAgeSeconds: number;
  /**
   * What happens to a valid token while the list is older: `reject` with `revocations_stale`, or `accept`. Both reject
   * it until the list was read once.
   */
  onStale: 'reject' | 'accept';
  /** The largest number of revocations in memory; 5,000,000 if omitted. With more, the list is stale. */
  maxEntries?: number;
}

export interface TokenVerifierOptions {
  /** The exact `iss` of the tokens: the AUTH_URL of the service. */
  issuer: string;
  /** The `aud` of the tokens that the API accepts: `customer-api`, `agent-api`, or a list of both. */
  audience: string | readonly string[];
  revocations: RevocationOptions;
  /** The URL of the keys; `<issuer>/.well-known/jwks.json` if omitted. */
  jwksUrl?: string;
  /** Whether URLs may be plain http, also to other hosts than the own one; false if omitted. */
  allowPlainHttp?: boolean;
  /** How long known keys verify tokens while the keys cannot be fetched, in seconds; 3,600 if omitted. */
  maxKeyAgeSeconds?: number;
  /** The number of verified tokens in memory; 1,000 if omitted, 0 for none. */
  cacheSize?: number;
}

/** Options that are complete and checked. */
export interface CheckedOptions {
  issuer: string;
  audiences: readonly string[];
  jwksUrl: URL;
  maxKeyAgeMs: number;
  cacheSize: number;
  feedUrl: URL;
  authorization: string;
  maxAgeSeconds: number;
  onStale: 'reject' | 'accept';
  maxEntries: number;
}

const AUDIENCES = ['customer-api', 'agent-api'];
/** `URL` writes each IPv4 address with four numbers, and each IPv6 address in its shortest form. */
const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** @throws TypeError that names the invalid option */
export function checkOptions(options: TokenVerifierOptions): CheckedOptions {
  const {
    issuer,
    audience,
    revocations,
    maxKeyAgeSeconds = 3_600,
    cacheSize = 1_000,
    allowPlainHttp = false,
  } = options;
  const { url, id, secret, maxAgeSeconds, onStale, maxEntries = 5_000_000 } = revocations ?? ({} as RevocationOptions);
  const jwksUrl = options.jwksUrl ?? `${issuer}`.replace(/\/?$/, '/.well-known/jwks.json');
  const audiences = [audience].flat();
  if (audiences.length === 0 || !audiences.every((each) => AUDIENCES.includes(each)))
    throw new TypeError('audience: must be customer-api, agent-api, or a list of both');
  assertText('revocations.id', id);
  assertText('revocations.secret', secret);
  assertInteger({ maxAgeSeconds }, 5, 3_600);
  assertInteger({ maxKeyAgeSeconds }, 0, 86_400);
  assertInteger({ maxEntries }, 1, 10_000_000);
  assertInteger({ cacheSize }, 0, 100_000);
  if (onStale !== 'reject' && onStale !== 'accept') throw new TypeError('onStale: must be reject or accept');
  if (typeof allowPlainHttp !== 'boolean') throw new TypeError('allowPlainHttp: must be true or false');
  const urlOf = (name: string, text: string) => checkUrl(name, text, allowPlainHttp);
  urlOf('issuer', issuer);
  return {
    issuer,
    audiences,
    jwksUrl: urlOf('jwksUrl', jwksUrl),
    maxKeyAgeMs: maxKeyAgeSeconds * 1000,
    cacheSize,
    feedUrl: urlOf('revocations.url', url),
    authorization: basicCredentials(id, secret),
    maxAgeSeconds,
    onStale,
    maxEntries,
  };
}

/** Both parts are form-urlencoded (RFC 6749 §2.3.1). */
function basicCredentials(id: string, secret: string): string {
  return `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`;
}

/** With plain http, an attacker in the network can replace the keys, hide revocations and read the secret. */
function checkUrl(name: string, text: string, allowPlainHttp: boolean): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw new TypeError(`${name}: must be an http or https URL`);
  if (url.protocol === 'http:' && !LOOPBACK_HOST.test(url.hostname) && !allowPlainHttp)
    throw new TypeError(`${name}: must be an https URL, or allowPlainHttp must be true`);
  if (url.username || url.password) throw new TypeError(`${name}: must not contain credentials`);
  return url;
}

function assertText(name: string, text: string): void {
  if (typeof text !== 'string' || text === '') throw new TypeError(`${name}: must be a string that is not empty`);
}

function assertInteger(option: Record<string, number>, min: number, max: number): void {
  for (const [name, value] of Object.entries(option)) {
    if (!Number.isInteger(value) || value < min || value > max)
      throw new TypeError(`${name}: must be an integer from ${min} to ${max}`);
  }
}
