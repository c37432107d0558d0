/** A second use from the same network within this time is a duplicate, not a replay (protocol §3.7). */
const DUPLICATE_WINDOW_MS = 2_000;

/** When and where a code was redeemed. */
interface Redemption {
  /** Milliseconds since the redemption, by the clock of the database; `null` if the code is not redeemed. */
  redeemed_for: number | null;
  redeemed_network: string | null;
}

/**
 * Whether a further use of a code is a duplicate of the first one. An unknown network is another one than any other. The
 * time is negative if the SELECT began before the redemption, for example because it waited for another node, or if the
 * clock of the database was set back. Set back by more than the window, a further use is a replay.
 */
export function isDuplicateUse({ redeemed_for, redeemed_network }: Redemption, network: string | null): boolean {
  const isSoon = redeemed_for !== null && Math.abs(redeemed_for) <= DUPLICATE_WINDOW_MS;
  return isSoon && network !== null && network === redeemed_network;
}
