/**
 * `TEST_NIGHTLY=true npm test` runs all end-to-end tests on both databases, and random tests ten times as long
 * (docs/testing.md).
 */
export const IS_NIGHTLY = process.env.TEST_NIGHTLY === 'true';

/** The number of rounds of a test on a cluster. */
export const roundsOf = ({ byDay, nightly }: { byDay: number; nightly: number }) => (IS_NIGHTLY ? nightly : byDay);

/** The number of random values of a property: in the nightly checks all, else a tenth of them. */
export function randomRuns(nightlyRuns: number): { numRuns: number } {
  return { numRuns: IS_NIGHTLY ? nightlyRuns : Math.ceil(nightlyRuns / 10) };
}
