export const DAY_MS = 86_400_000;

/** The day of a time (milliseconds since 1970), in days since 1970 (UTC). */
export const dayOf = (timeMs: number): number => Math.floor(timeMs / DAY_MS);
