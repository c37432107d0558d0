import type { Request } from 'express';
import type { AccessTokenClaims } from '../../access-token/access-tokens.js';
import { inactiveToken } from '../../access-token/inactive-reason.js';
import type { RevocableClaims } from '../../access-token/session-claims.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { party } from '../../platform/audit/audit.js';
import type { AuditParty } from '../../platform/audit/audit-event.js';
import { type RequestContext, requestContext } from '../../platform/request-context/request-context.js';
import type { ProofCustomer } from '../../redemption/proofs.js';

/** The scope that an agent needs to create customers and to act for them. */
export const CUSTOMERS_OWN = 'customers:own';
/** The scope that an agent needs to export and erase the data of customers. */
export const CUSTOMERS_MANAGE = 'customers:manage';

/** What agents and customers have in common as callers. */
interface AuthenticatedCaller {
  organizationId: string;
  /** The application through which the caller calls. */
  clientId: string;
  /** The claims that decide whether the bearer token has ended. */
  claims: Readonly<RevocableClaims & { exp: number }>;
}

/** An agent of an organization. It calls through an application to which it has granted scopes. */
export interface AgentPrincipal extends AuthenticatedCaller {
  kind: 'agent';
  agentId: string;
  scopes: string[];
  /** Whether a trusted issuer issued the bearer token. */
  isFromTrustedIssuer: boolean;
  /**
   * Makes a session for a proof that this agent creates in a route, and returns a random id of 36 characters. The route
   * stores the id unchanged with the proof, and the grant returns it as `proof` of its result. The token then ends with
   * the bearer token and with the agent. The id is for the database only: never put it into a response, a token or a
   * log. Each call counts in the customer's bound of 200 (protocol §3.10), so check the request before.
   *
   * @param customer the customer that the proof leads to; without it, the first redemption decides about the customer
   * of the agent's organization
   * @throws OAuthError `invalid_grant` if the sessions of the customer have ended; 429 if it has too many;
   * `invalid_token` if the bearer token has ended meanwhile
   */
  proof(customer?: ProofCustomer): Promise<string>;
}

/** A customer, calling with its own access token. */
export interface CustomerPrincipal extends AuthenticatedCaller {
  kind: 'customer';
  claims: Readonly<AccessTokenClaims>;
  entityId: string;
  /**
   * Makes a session for a proof that this customer creates in a route, and returns a random id of 36 characters. The
   * route stores the id unchanged with the proof, and the grant returns it as `proof` of its result. The token then
   * ends with the bearer token. The id is for the database only: never put it into a response, a token or a log. Each
   * call counts in the customer's bound of 200 (protocol §3.10), so check the request before.
   *
   * @throws OAuthError `invalid_grant` if the chain of transfers and proofs is too long; 429 if the customer has too
   * many sessions; `invalid_token` if the bearer token has ended meanwhile
   */
  proof(): Promise<string>;
}

/** The caller that a bearer token authenticates. */
export type Principal = AgentPrincipal | CustomerPrincipal;

/** A caller as its token names it. `BearerStrategy` adds `proof`. */
export type NamedCaller = Omit<AgentPrincipal, 'proof'> | Omit<CustomerPrincipal, 'proof'>;

/** The caller of a request with a bearer token. A guard may have authenticated another kind of caller. @internal */
export function principalOf(request: Request): Principal | undefined {
  const user = request.user as Principal | { kind?: undefined } | undefined;
  return user?.kind === undefined ? undefined : user;
}

/** Names the caller of a request in the log, the metrics and the audit. The guards do, and no code below them. */
export function recordCaller(facts: Partial<RequestContext>): void {
  requestContext.set(facts);
}

/** What the log says about the token of a caller. The subject at a trusted issuer may be an email address. */
export function factsOf(principal: Principal): Partial<RequestContext> {
  const { kind, clientId, organizationId, claims } = principal;
  const isForeign = kind === 'agent' && principal.isFromTrustedIssuer;
  return isForeign ? { organizationId, token: { jti: claims.jti } } : { clientId, organizationId, token: claims };
}

/** What the log says about a token of this service whose signature is valid, but which admits no caller. */
export function factsOfClaims(claims: AccessTokenClaims) {
  return { clientId: claims.client_id, organizationId: claims.organization_id, token: claims };
}

/** The agent as the actor of an audit event. Agents of different issuers may have the same id. */
export function agentActor({ agentId: id, isFromTrustedIssuer, claims }: AgentPrincipal): AuditParty {
  return { ...party('agent', id), ...(isFromTrustedIssuer && { issuer: claims.iss }) };
}

/** @throws OAuthError `invalid_request` if the customer names another customer */
export function ownId({ entityId }: CustomerPrincipal, namedId: string | undefined): string {
  if (namedId === undefined || namedId === entityId) return entityId;
  throw OAuthError.invalidRequest('customer_id: must be the customer of the bearer token');
}

/**
 * @throws OAuthError `invalid_token` if the bearer token is a customer's; `insufficient_scope` if it lacks the scope
 */
export function assertAgent(principal: Principal | undefined, scope?: string): AgentPrincipal {
  if (principal?.kind !== 'agent') throw inactiveToken('other_audience');
  if (scope !== undefined && !principal.scopes.includes(scope)) throw OAuthError.insufficientScope(scope);
  return principal;
}

/** @throws OAuthError `invalid_token` if the bearer token is an agent's */
export function assertCustomer(principal: Principal | undefined): CustomerPrincipal {
  if (principal?.kind !== 'customer') throw inactiveToken('other_audience');
  return principal;
}

/** The audience alone decides the kind of caller (protocol §3.1). @throws OAuthError `invalid_token` */
export function callerOf(claims: AccessTokenClaims): NamedCaller {
  const { aud, sub, organization_id, client_id, scope = '' } = claims;
  const caller = { organizationId: organization_id, clientId: client_id, claims };
  switch (aud) {
    case 'agent-api':
      return { kind: 'agent', agentId: sub, scopes: scope.split(' '), isFromTrustedIssuer: false, ...caller };
    case 'customer-api':
      return { kind: 'customer', entityId: sub, ...caller };
    default:
      throw inactiveToken('other_audience').about(factsOfClaims(claims));
  }
}
