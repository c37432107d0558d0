import { OptionalInteger, OptionalText, Text } from '../oauth/parameters.js';
import { EXAMPLE } from '../platform/http/api-examples.js';

/** The API that a token is for. Only the audience distinguishes the two kinds of token. */
export type Audience = 'customer-api' | 'agent-api';

/** The agent that obtained a customer token (RFC 8693 §4.1). */
export class Actor {
  @Text('The id of the agent.', EXAMPLE.agentId)
  sub!: string;

  @Text("The id of the agent's token. The customer token ends with it.", EXAMPLE.tokenId)
  sid!: string;

  @Text("The client of the agent's token.", EXAMPLE.serverClientId)
  client_id!: string;

  @OptionalInteger(
    'The generation of the agent. The token has ended if the agent has another one. Absent for another issuer.',
    0,
  )
  gen?: number;

  @OptionalText("The issuer of the agent's token, if this service did not issue it.", 'https://login.example')
  iss?: string;
}

/** The claims that name the session of a customer token, and therefore the events that end the token. */
export interface SessionClaims {
  /** The generation of the customer. The token has ended if the customer has another one. */
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
  /** Seconds since 1970. */
  iat: number;
  /** Absent for a token of a trusted issuer, whose subjects have no generation here. */
  aud?: Audience;
  iss?: string;
}

/** The refresh family that an agent's token belongs to. A token without a refresh token is a family of its own. */
export function familyOf(jti: string): string {
  return jti.split('.', 1)[0] as string;
}

/** The agent as the actor of the customer tokens that it obtains. */
export function actorOf({ jti: sid, sub, client_id, gen = 0, aud, iss }: RevocableClaims): Actor {
  if (aud === undefined) return { sub, sid, client_id, ...(iss !== undefined && { iss }) };
  return { sub, sid, client_id, gen };
}
