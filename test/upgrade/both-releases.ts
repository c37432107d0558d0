import { afterAll, beforeAll } from 'vitest';
import { registryOfRelease1 } from './release-1-registry.js';
import { type Pod, type Release, UpgradeTestEnvironment } from './upgrade-test-environment.js';

export let testEnvironment: UpgradeTestEnvironment;
/** A process of each release on one database. */
export let pods: Record<Release, Pod>;

export const both = (): [Pod, Pod] => [pods[1], pods[2]];
/** The process that gets the n-th request. */
export const inTurn = (index: number): Pod => pods[index % 2 ? 2 : 1];
export const other = (release: Release): Pod => pods[release === 1 ? 2 : 1];

/**
 * Starts release 1, migrates, and starts release 2, for the tests of a file.
 *
 * @param earlier what callers do before the migration
 * @param registry is called before the start
 */
export function startBothReleases(
  earlier: (first: Pod) => Promise<void> = async () => undefined,
  registry: () => Promise<object> = async () => registryOfRelease1(),
): void {
  beforeAll(async () => {
    testEnvironment = await UpgradeTestEnvironment.build(await registry());
    const first = await testEnvironment.start(1);
    await earlier(first);
    await testEnvironment.run(2, 'migrate');
    pods = { 1: first, 2: await testEnvironment.start(2) };
  });
  afterAll(() => testEnvironment?.remove());
}
