const { FUZZ_SEED, FUZZ_FIRST, FUZZ_REQUESTS } = process.env;

/**
 * What the kit's fuzzing does, which FUZZ_SEED, FUZZ_FIRST and FUZZ_REQUESTS change; each run is the same unless they
 * do.
 */
export const fuzzOptions = {
  seed: Number(FUZZ_SEED || 2026),
  first: Number(FUZZ_FIRST || 0),
  requests: Number(FUZZ_REQUESTS || 2_000),
};
