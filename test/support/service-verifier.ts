import type { TokenVerifierOptions } from '../../packages/token-verifier/src/options.js';
import { TokenVerifier } from '../../packages/token-verifier/src/token-verifier.js';
import { FEED_SECRET, FEED_SERVERS } from './revocation-feed.js';
import { testRegistry } from './test-registry.js';
import type { TestService } from './test-service.js';

export const registryWithServers = () => ({ ...testRegistry(), resource_servers: FEED_SERVERS });

/** A verifier of a running service, whose clock it shares. */
export function verifierOf(
  service: Pick<TestService, 'url' | 'managementUrl' | 'clock'>,
  { audience = 'customer-api', onStale = 'reject' as 'reject' | 'accept', ...changes }: Partial<Options> = {},
  { skewSeconds = 0 } = {},
): TokenVerifier {
  const id = audience === 'agent-api' ? 'agent-server' : 'customer-server';
  const url = `${changes.feedUrl ?? service.managementUrl}/oauth2/revocations`;
  const options: TokenVerifierOptions = {
    issuer: 'https://auth.example',
    jwksUrl: `${changes.keysUrl ?? service.url}/.well-known/jwks.json`,
    audience,
    revocations: { url, id, secret: FEED_SECRET, maxAgeSeconds: 60, onStale },
  };
  const now = () => service.clock.now() + skewSeconds * 1000;
  return new TokenVerifier(options, { now, monotonic: () => performance.now() });
}

interface Options {
  audience: string;
  onStale: 'reject' | 'accept';
  feedUrl: string;
  keysUrl: string;
}

/** Resolves to `valid`, or to the code of the error. */
export function decisionOf(verifier: TokenVerifier, token: string): Promise<string> {
  return verifier.verify(token).then(
    () => 'valid',
    ({ code }) => code,
  );
}
