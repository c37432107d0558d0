import { describe, expect, it } from 'vitest';
import { exportConfigurationInfo } from '../../src/access-token/configuration-info.js';
import { generateKey, type PublicJwk, readKeySet } from '../../src/access-token/key-set.js';
import { loadConfiguration } from '../../src/platform/configuration/load-configuration.js';
import { MetricsRegistry } from '../../src/platform/metrics.js';
import { read } from '../support/project-files.js';

const { version } = JSON.parse(read('package.json'));
const CONFIGURATION = loadConfiguration({ AUTH_URL: 'https://auth.example', TOKEN_REGION: 'eu' });

/** The samples of the metric of a process that publishes the keys. */
function samplesOf(publishedKeys: () => PublicJwk[]) {
  const metrics = new MetricsRegistry();
  exportConfigurationInfo(CONFIGURATION, publishedKeys, metrics);
  return async () => (await metrics.metrics()).match(/^cas_configuration_info\{.*$/gm) ?? [];
}

const keysOf = (keys: object[]) => readKeySet(JSON.stringify({ keys })).map(({ publicJwk }) => publicJwk);

describe('cas_configuration_info', () => {
  const [one, other] = [generateKey(0), generateKey(0)];
  const ofKeys = async (keys: object[]) => samplesOf(() => keysOf(keys))();

  it('has the issuer, the region, a short hash of the published keys and the version', async () => {
    const labels = `issuer="https://auth.example",region="eu",keys="[0-9a-f]{12}",version="${version}"`;
    expect(await ofKeys([one])).toEqual([expect.stringMatching(`^cas_configuration_info{${labels}} 1$`)]);
  });

  it('has the same hash for the same keys in another order, and another hash for other keys', async () => {
    expect(await ofKeys([one, other])).toEqual(await ofKeys([other, one]));
    const hashes = await Promise.all([[one], [other], [one, other]].map(ofKeys));
    expect(new Set(hashes.flat()).size).toBe(3);
  });

  it('has the same hash after a change of what is not published', async () => {
    expect(await ofKeys([{ ...one, nbf: 60, exp: 120 }])).toEqual(await ofKeys([one]));
  });

  it('has one sample after a change of the keys', async () => {
    let keys = keysOf([one]);
    const samples = samplesOf(() => keys);
    const before = await samples();
    keys = keysOf([other]);
    const after = await samples();
    expect(after).toHaveLength(1);
    expect(after).not.toEqual(before);
  });
});
