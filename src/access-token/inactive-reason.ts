import { OAuthError } from '../oauth/oauth-error.js';

/** What is stored about a transfer token, an authorization code or a refresh token. */
export interface StoredToken {
  kind: 'transfer token' | 'authorization code' | 'refresh token';
  clientId: string;
  /** The customer or agent. */
  subject: string;
  organizationId: string;
  /** Milliseconds since 1970. */
  expiresAt: number;
  /** The session of the customer or agent. */
  session?: string;
  inactiveReason?: InactiveReason;
}

/** `token explain` prints the sentences. Log lines, introspection and docs/observability.md have the names. */
export const INACTIVE_REASONS = {
  malformed: 'The text does not have the form REGION:JWS of an access token.',
  percent_encoded: 'The text contains %3A. The caller must replace %3A by a colon.',
  no_region: 'The text is a JWS without a region prefix.',
  other_region: 'The region prefix is not the TOKEN_REGION of this service.',
  not_an_access_token: 'The text has the form of a transfer token, an authorization code or a refresh token.',
  unknown_key: 'No current signing key has the header of the token: the key was removed, or another service signed.',
  invalid_signature: 'The signature does not match the content of the token.',
  other_issuer: 'The issuer in the token is not the AUTH_URL of this service.',
  expired: 'The token has expired.',
  not_yet_valid: 'The token was issued in the future: a clock differs by more than 30 s.',
  other_audience: 'The route or the resource server does not accept the audience of the token.',
  not_stored: 'No such code or refresh token is stored for the caller: it never existed, or it was purged.',
  already_used: 'The code was redeemed, or the refresh token was replaced by a newer one.',
  other_client: 'The token belongs to another client than the one that wants to end it.',
  other_organization: 'The trusted issuer may not issue tokens for the organization in the token.',
  rejected_claim: 'A claim or the header of a token of a trusted issuer violates a rule.',
  revoked: 'The token or its session was ended: by its holder, a client, the operator or a replay.',
  refresh_token_revoked: 'The session of a refresh token was ended: by a client, the operator or reuse.',
  ancestor_revoked: "The token ended with the session, or the agent's token, with which it was made.",
  session_ended:
    'The session of the token is gone or was renewed, and its record, which names the reason, has expired.',
  client_revoked: 'The client of the token was deleted.',
  client_suspended: 'The client of the token is suspended, or was since the token was issued.',
  organization_suspended: 'The organization of the token is suspended, or was since the token was issued.',
  customer_generation: 'The customer was erased or linked to a user, or all its tokens were ended.',
  agent_changed: 'The agent was deleted, or has a new password, other scopes or another organization.',
} as const;

export type InactiveReason = keyof typeof INACTIVE_REASONS;

/** The error response to a bearer token that is not valid. Only the log contains the reason. */
export const inactiveToken = (reason: InactiveReason): OAuthError =>
  OAuthError.invalidToken(reason, reason === 'percent_encoded' ? 'Authorization: replace %3A by a colon' : undefined);
