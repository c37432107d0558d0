/** A second use from the same network within this time is a duplicate, not a replay (protocol §3.7). */
const DUPLICATE_WINDOW_MS = 2_000;

/** When and where a code was redeemed. */
interface Redemption {
  /** Milliseconds since the redemption, by the clock of the database; `null` if the code is not redeemed. */
  redeemed_for: number | null;
  redeemed_network: string | null;
}

/**
 * Reads the row of a code. A SELECT can see a redemption that is later than the beginning of the SELECT, for example one
 * that waits for another node. Then a further SELECT decides whether the clock of the database was set back.
 */
export async function settledRow<Row extends Redemption>(
  read: () => Promise<Row | undefined>,
): Promise<Row | undefined> {
  const row = await read();
  return row && (row.redeemed_for ?? 0) < 0 ? read() : row;
}

/** Whether a further use of a code is a duplicate of the first one. An unknown network is another one than any other. */
export function isDuplicateUse({ redeemed_for, redeemed_network }: Redemption, network: string | null): boolean {
  // negative if the clock of the database was set back
  const isSoon = redeemed_for !== null && redeemed_for >= 0 && redeemed_for <= DUPLICATE_WINDOW_MS;
  return isSoon && network !== null && network === redeemed_network;
}
