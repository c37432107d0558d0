import { Gauge } from 'prom-client';
import type { Configuration } from '../platform/configuration/configuration.js';
import type { MetricsRegistry } from '../platform/metrics.js';
import { sha256 } from '../platform/secret.js';
import { VERSION } from '../platform/version.js';
import type { PublicJwk } from './key-set.js';

const HASH_CHARACTERS = 12;

/**
 * Exports what decides about the tokens of a process. All processes must have the same, so that an alert can compare.
 */
export function exportConfigurationInfo(
  { AUTH_URL: issuer, TOKEN_REGION: region }: Configuration,
  publishedKeys: () => PublicJwk[],
  metrics: MetricsRegistry,
): void {
  new Gauge({
    name: 'cas_configuration_info',
    help: 'Always 1; the labels are the issuer, the region, a hash of the published keys, and the version.',
    labelNames: ['issuer', 'region', 'keys', 'version'],
    registers: [metrics],
    collect() {
      this.reset(); // without the labels of earlier keys
      this.set({ issuer, region, keys: hashOf(publishedKeys()), version: VERSION }, 1);
    },
  });
}

/** A hash of keys that does not depend on their order. */
function hashOf(keys: PublicJwk[]): string {
  const texts = keys.map((key) => JSON.stringify(key)).sort();
  return sha256(texts.join()).slice(0, HASH_CHARACTERS);
}
