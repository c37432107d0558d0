const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 10_000;
/** A longer `Retry-After` counts as this one, so that a mistake of a proxy does not stop the feed for hours. */
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * The milliseconds before the next attempt. They double with each failure and are random between a half and the whole,
 * so that the processes of an API do not repeat their requests at the same moment.
 */
export function retryDelayMs(failures: number, random: () => number = Math.random): number {
  const longest = Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), MAX_DELAY_MS);
  return (longest / 2) * (1 + random());
}

/** Reads a `Retry-After` header (RFC 9110 §10.2.3), in milliseconds; 0 if the header is missing or malformed. */
export function retryAfterMs(header: string | null, now: number): number {
  if (header === null) return 0;
  const wait = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isNaN(wait) ? 0 : Math.min(Math.max(wait, 0), MAX_RETRY_AFTER_MS);
}
