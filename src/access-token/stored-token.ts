import type { InactiveReason } from './inactive-reason.js';

/** What is stored about a transfer token, an authorization code or a refresh token. */
export interface StoredToken {
  kind: 'transfer token' | 'authorization code' | 'refresh token';
  clientId: string;
  /** The customer or agent. */
  subject: string;
  organizationId: string;
  /** Milliseconds since 1970. */
  expiresAt: number;
  /** The `jti` of the token that a redeemed code gave, or the family of a refresh token. */
  family?: string;
  inactiveReason?: InactiveReason;
}
