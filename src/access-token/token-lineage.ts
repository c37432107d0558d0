import { OAuthError } from '../oauth/oauth-error.js';
import { OptionalInteger, OptionalText, Text } from '../oauth/parameters.js';
import { EXAMPLE } from '../platform/http/api-examples.js';

/** The API that a token is for. Only the audience distinguishes the two kinds of token. */
export type Audience = 'customer-api' | 'agent-api';

/** The agent that obtained a customer token (RFC 8693 §4.1). */
export class Actor {
  @Text('The id of the agent.', EXAMPLE.agentId)
  sub!: string;

  @Text("The client of the agent's token.", EXAMPLE.serverClientId)
  client_id!: string;

  @OptionalInteger(
    'The generation of the agent. The token has ended if the agent has a higher one. Absent for another issuer.',
    0,
  )
  gen?: number;

  @OptionalText("The issuer of the agent's token, if this service did not issue it.", 'https://login.example')
  iss?: string;
}

/** The claims that name the origin of a token, and therefore the events that end it. */
export interface TokenLineage {
  /** The generation of the customer or agent that the token is for. */
  gen: number;
  /** The `jti` and family ids of the tokens that this one descends from, oldest first. */
  ancestors?: string[];
  act?: Actor;
  /** The number of identity transfers that led to this token. */
  transfers?: number;
}

/** The claims of a token that decide whether it has ended. */
export interface RevocableClaims extends Partial<TokenLineage> {
  jti: string;
  sub: string;
  client_id: string;
  /** Seconds since 1970. */
  iat: number;
  /** Absent for a token of a trusted issuer, whose subjects have no generation here. */
  aud?: Audience;
  iss?: string;
}

/** Protocol §3.10. */
const MAX_TRANSFERS = 8;
export const MAX_ANCESTORS = 20;

/** The refresh family that a token belongs to. A token without a refresh token is a family of its own. */
export function familyOf(jti: string): string {
  return jti.split('.', 1)[0] as string;
}

/** The ids whose revocation ends a token and its descendants: the id of its family and its `jti`. */
export function revocableIds(jti: string): string[] {
  return [...new Set([familyOf(jti), jti])];
}

/** The token ends with the agent's token and with the agent. */
export function lineageByAgent(agent: RevocableClaims, customerGeneration: number): TokenLineage {
  return { gen: customerGeneration, ancestors: revocableIds(agent.jti), act: actorOf(agent) };
}

/**
 * @param customerGeneration present only if the bearer is an agent
 * @throws OAuthError `invalid_grant` if the chain of transfers is too long
 */
export function lineageByTransfer(bearer: RevocableClaims, customerGeneration?: number): TokenLineage {
  const transfers = (bearer.transfers ?? 0) + 1;
  const ancestors = [...(bearer.ancestors ?? []), ...revocableIds(bearer.jti)];
  if (transfers > MAX_TRANSFERS || ancestors.length > MAX_ANCESTORS)
    throw OAuthError.invalidGrant(`transfer: more than ${MAX_TRANSFERS} in a chain`);
  const act = customerGeneration === undefined ? bearer.act : actorOf(bearer);
  return { gen: customerGeneration ?? bearer.gen ?? 0, ancestors, ...(act && { act }), transfers };
}

/** Ends with the tokens of both. @throws OAuthError `invalid_grant` for two agents, because a token has one actor */
export function lineageByBoth({ act, ancestors = [], ...lineage }: TokenLineage, agent: RevocableClaims): TokenLineage {
  const actor = actorOf(agent);
  if (act && (act.sub !== actor.sub || act.iss !== actor.iss))
    throw OAuthError.invalidGrant('descent: of another agent than the caller');
  const ids = revocableIds(agent.jti).filter((id) => !ancestors.includes(id));
  const all = act ? [...ancestors, ...ids] : [...ids, ...ancestors];
  // the added ids are the agent's: its first id closes them, so that they are no root
  if (act && rootOf({ act, ancestors: all }) !== rootOf({ act, ancestors })) all.push(ancestors[0] as string);
  if (all.length > MAX_ANCESTORS) throw OAuthError.invalidGrant(`descent: more than ${MAX_ANCESTORS} ancestors`);
  return { ...lineage, ancestors: all, act: actor };
}

/**
 * The first token of a chain of transfers that is not of the customer's agent; `undefined` if there is none. The ids of
 * the agent come first. They end where its first id is repeated, or else behind the ids of one family.
 */
export function rootOf({ ancestors = [], act }: Pick<TokenLineage, 'ancestors' | 'act'>): string | undefined {
  if (!act) return ancestors[0];
  const first = ancestors[0] as string;
  const others = ancestors.slice(ancestors.lastIndexOf(first) + 1);
  return others.find((id) => familyOf(id) !== first);
}

function actorOf({ sub, client_id, gen = 0, aud, iss }: RevocableClaims): Actor {
  if (aud === undefined) return { sub, client_id, ...(iss !== undefined && { iss }) };
  return { sub, client_id, gen };
}
