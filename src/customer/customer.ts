import type { SessionClaims } from '../access-token/session-claims.js';

/** The id of a group (protocol §4.2). Case counts. */
export const GROUP_ID = /^[A-Za-z0-9_-]{1,64}$/;

export const GROUP_ID_RULE = 'must be 1 to 64 letters, digits, _ or -';

/** The creator of a customer in the audit event. */
export type CustomerCreator = 'browser' | 'agent' | 'organization';

/** The organization and group of a customer. A browser has at most one customer in each. */
export interface CustomerSpace {
  organizationId: string;
  /** The empty string if the customer belongs to no group. */
  groupId: string;
}

/** The organization without a group, or the given space. @internal */
export function spaceOf(space: string | CustomerSpace): CustomerSpace {
  return typeof space === 'string' ? { organizationId: space, groupId: '' } : space;
}

/** A customer of an organization, with the values that a token needs. */
export interface Customer {
  entityId: string;
  organizationId: string;
  /** The group of the customer; the empty string if it belongs to none. */
  groupId: string;
  /** The generation at the time of the lookup. Tokens with another generation than the customer's have ended. */
  generation: number;
  /** Whether the customer is a user of the organization: it has an external id, or the `sub` of a sign-in. */
  hasUser: boolean;
  /** The session of the customer's tokens, if a browser or a transfer token led to the customer. @internal */
  session?: SessionClaims;
}
