/** How many pairs of identity cookies of one request are tried (protocol §5.4). */
export const MAX_PAIRS_COUNT = 4;

/** A pair of identity cookies that were set together. */
export interface BrowserPair {
  /** The `entity_id` of the customer that the pair was set for. */
  entityId: string;
  browserId: string;
  secret: string;
  /** The browser's id and secret, as the cookie begins. */
  cookie: string;
}
