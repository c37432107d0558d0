import type { TokenLineage } from '../access-token/token-lineage.js';

/** The lineage of a browser link, stored as JSON. The generation of its tokens is the customer's at the time of issue. */
export type LinkLineage = Omit<TokenLineage, 'gen'>;

/** The lineage of a link that a transfer token gives. The link ends with the redemption and with its ancestors. */
export function lineageOfLink({ gen: _, ancestors = [], ...rest }: TokenLineage, redemption: string): LinkLineage {
  return { ...rest, ancestors: [...ancestors, redemption] };
}

/** The lineage of a token that a link gives; `undefined` for a link that did not come from a transfer. */
export function lineageOfToken(stored: string | null, generation: number): TokenLineage | undefined {
  return stored === null ? undefined : { ...(JSON.parse(stored) as LinkLineage), gen: generation };
}
