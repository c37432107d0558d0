import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { underLoad } from '../faults/faults.js';
import { type Pod, type Release, UpgradeTestEnvironment } from './upgrade-test-environment.js';

/** Few, because the start of a process must not starve. */
const CALLER_COUNT = 10;

let testEnvironment: UpgradeTestEnvironment;
/** The processes that get requests. */
let pods: Pod[] = [];
const urls = () => pods.map(({ url }) => url);

beforeAll(async () => {
  testEnvironment = await UpgradeTestEnvironment.build();
  pods = await Promise.all([testEnvironment.start(1), testEnvironment.start(1)]);
});
afterAll(() => testEnvironment?.remove());

/** Replaces a process by one of a release. The process gets no more requests before it ends. */
async function replace(old: Pod, release: Release): Promise<Pod> {
  const started = await testEnvironment.start(release);
  pods = [...pods.filter((pod) => pod !== old), started];
  expect(await old.terminate()).toBe(0);
  return started;
}

describe('protocol §9.6: a roll-out under load', () => {
  it('migrates, replaces all processes, rolls one back and completes without an error for a caller', async () => {
    const rollOut = async () => {
      await testEnvironment.run(2, 'migrate');
      const rolledBack = await replace(await replace(pods[0] as Pod, 2), 1);
      for (const old of pods.filter((pod) => pod !== rolledBack)) await replace(old, 2);
      await replace(rolledBack, 2);
      expect(await testEnvironment.run(2, 'migrate', '--complete')).toBe('complete\n');
    };
    const { statuses } = await underLoad(urls, rollOut, CALLER_COUNT);
    expect(Object.keys(statuses).filter((status) => status === 'none' || status === '503')).toEqual([]);
  });
});
