import type { TokenLineage } from '../access-token/token-lineage.js';

/** The agent that granted access, or the customer that stays on a device. */
interface FamilyOwner {
  kind: 'agent' | 'customer';
  id: string;
}

/** The access that a refresh family gives. */
export interface RefreshContent {
  owner: FamilyOwner;
  clientId: string;
  organizationId: string;
  /** Scopes separated by spaces; empty for a customer. */
  scope: string;
  /** The lineage of the family's tokens. `gen` is the owner's generation when access was granted. */
  lineage: TokenLineage;
}

/** The result of a rotation. */
export interface Rotated<Access> {
  /** What the caller decided to give. */
  access: Access;
  /** The family's id; the `jti` of its access tokens begins with it. */
  family: string;
  refreshToken: string;
}

/** The client that presents a refresh token, and the endpoint that it presents the token to. */
export interface RefreshingClient {
  clientId: string;
  /** Whether the client has authenticated with its secret. */
  isAuthenticated: boolean;
  /** The owners of the families that the endpoint serves. The token of another family is rejected and ends nothing. */
  ownerKind: FamilyOwner['kind'];
}

/** A refresh family, and whose tokens end with it. */
export interface FamilyToEnd {
  id: string;
  ownerKind: FamilyOwner['kind'];
}
