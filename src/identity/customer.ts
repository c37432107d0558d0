import type { TokenLineage } from '../access-token/token-lineage.js';

/** A customer of an organization, with the values that a token needs. */
export interface Customer {
  entityId: string;
  organizationId: string;
  /** The group of the customer; the empty string if it belongs to none. */
  groupId: string;
  /** The generation at the time of the lookup. Tokens with a lower generation than the customer's have ended. */
  generation: number;
  /** The lineage of the customer's tokens if a browser link from a transfer led to the customer. @internal */
  lineage?: TokenLineage;
}
