/** Where the revocations come from, and what happens without them. */
export interface RevocationOptions {
  /** The URL of `GET /oauth2/revocations` on the management port of the service. */
  url: string;
  /** The id of the resource server in the registry of the service. */
  id: string;
  /** The secret of the resource server; or `assertion`. */
  secret?: string | undefined;
  /**
   * Resolves to a client assertion (RFC 7523 §2.2), such as the content of a file with a projected token of Kubernetes.
   * The verifier calls it for each request.
   */
  assertion?: (() => Promise<string>) | undefined;
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
  credentials: Credentials;
  maxAgeSeconds: number;
  onStale: 'reject' | 'accept';
  maxEntries: number;
}

/** How the resource server authenticates. */
export type Credentials = { id: string } & ({ secret: string } | { assertion: () => Promise<string> });

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
  const feed = revocations ?? ({} as RevocationOptions);
  const { url, maxAgeSeconds, onStale, maxEntries = 5_000_000 } = feed;
  const jwksUrl = options.jwksUrl ?? `${issuer}`.replace(/\/?$/, '/.well-known/jwks.json');
  const audiences = [audience].flat();
  if (audiences.length === 0 || !audiences.every((each) => AUDIENCES.includes(each)))
    throw new TypeError('audience: must be customer-api, agent-api, or a list of both');
  const credentials = checkCredentials(feed);
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
    credentials,
    maxAgeSeconds,
    onStale,
    maxEntries,
  };
}

function checkCredentials({ id, secret, assertion }: RevocationOptions): Credentials {
  assertText('revocations.id', id);
  if (assertion === undefined) {
    assertText('revocations.secret', secret);
    return { id, secret };
  }
  if (typeof assertion !== 'function') throw new TypeError('revocations.assertion: must be a function');
  if (secret !== undefined) throw new TypeError('revocations: must have secret or assertion, and not both');
  return { id, assertion };
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

function assertText(name: string, text: unknown): asserts text is string {
  if (typeof text !== 'string' || text === '') throw new TypeError(`${name}: must be a string that is not empty`);
}

function assertInteger(option: Record<string, number>, min: number, max: number): void {
  for (const [name, value] of Object.entries(option)) {
    if (!Number.isInteger(value) || value < min || value > max)
      throw new TypeError(`${name}: must be an integer from ${min} to ${max}`);
  }
}
