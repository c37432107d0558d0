const { FUZZ_SEED, FUZZ_FIRST, FUZZ_REQUESTS } = process.env;

/**
 * The options of the kit's fuzzing. Every run sends the same requests unless FUZZ_SEED, FUZZ_FIRST or FUZZ_REQUESTS is
 * set.
 */
export const fuzzOptions = {
  seed: Number(FUZZ_SEED || 2026),
  first: Number(FUZZ_FIRST || 0),
  requests: Number(FUZZ_REQUESTS || 2_000),
};
