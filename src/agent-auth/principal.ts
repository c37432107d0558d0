import type { AccessTokenClaims } from '../access-token/access-tokens.js';

/** An agent of an organization, calling through an application that it has granted scopes to. */
export interface AgentPrincipal {
  kind: 'agent';
  agentId: string;
  organizationId: string;
  clientId: string;
  scopes: string[];
}

/** A customer, calling with its own access token. */
export interface CustomerPrincipal {
  kind: 'customer';
  entityId: string;
  organizationId: string;
  clientId: string;
}

/** Who calls with a bearer. */
export type Principal = AgentPrincipal | CustomerPrincipal;

/** The kind is read from the token's audience, nowhere else (contract, section 3). */
export function principalOf({ aud, sub, organization_id, client_id, scope = '' }: AccessTokenClaims): Principal {
  const common = { organizationId: organization_id, clientId: client_id };
  return aud === 'agent-api'
    ? { kind: 'agent', agentId: sub, scopes: scope.split(' '), ...common }
    : { kind: 'customer', entityId: sub, ...common };
}
