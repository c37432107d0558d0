import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiInteger, ApiOptionalString, ApiString } from '../platform/validation/validation.js';

/** The API that a token is for. Only the audience distinguishes the two kinds of token. */
export type Audience = 'customer-api' | 'agent-api';

/** The text of the claim `user_verified` in the OpenAPI document. */
export const USER_VERIFIED =
  'Present and `true` if the organization knows the customer as a user, or a grant has verified it; otherwise absent.';

/** The agent that obtained a customer token (RFC 8693 §4.1). */
export class Actor {
  @ApiString('The id of the agent.', EXAMPLE.agentId)
  sub!: string;

  @ApiString("The session of the agent's token. The customer token ends with it.", EXAMPLE.tokenId)
  sid!: string;

  @ApiInteger('The epoch of that session. The customer token has ended if the session has another one.', 0)
  ep!: number;

  @ApiString("The client of the agent's token.", EXAMPLE.serverClientId)
  client_id!: string;

  @ApiOptionalString("The issuer of the agent's token, if this service did not issue it.", 'https://login.example')
  iss?: string;
}

/** The claims that name the session of a token, and therefore the events that end the token. */
export interface SessionClaims {
  /** The generation of the customer. The token has ended if the customer has another one. Absent in agents' tokens. */
  gen: number;
  /** The session of the token; absent in a token without a session, such as one of the agent token grant. */
  sid?: string;
  /** The epoch of the session. The token has ended if the session has another one. */
  ep?: number;
  act?: Actor;
}

/** The claims of a token that decide whether it has ended. */
export interface RevocableClaims extends Partial<SessionClaims> {
  jti: string;
  sub: string;
  client_id: string;
  organization_id?: string;
  /** Seconds since 1970. */
  iat: number;
  /** Absent for a token of a trusted issuer. */
  aud?: Audience;
  iss?: string;
}
