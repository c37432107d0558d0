import type { AccessTokenClaims } from '../access-token/access-tokens.js';

interface Caller {
  organizationId: string;
  /** The application through which the caller calls. */
  clientId: string;
  /** What the denylist calls the bearer: its `jti`, for a foreign token with its issuer before it. */
  tokenId: string;
}

/** An agent of an organization, calling through an application that it has granted scopes to. */
export interface AgentPrincipal extends Caller {
  kind: 'agent';
  agentId: string;
  scopes: string[];
}

/** A customer, calling with its own access token. */
export interface CustomerPrincipal extends Caller {
  kind: 'customer';
  entityId: string;
}

/** Who calls with a bearer. */
export type Principal = AgentPrincipal | CustomerPrincipal;

/** The kind is read from the token's audience, nowhere else (contract, section 3). */
export function principalOf({ aud, sub, organization_id, client_id, jti, scope = '' }: AccessTokenClaims): Principal {
  const caller = { organizationId: organization_id, clientId: client_id, tokenId: jti };
  return aud === 'agent-api'
    ? { kind: 'agent', agentId: sub, scopes: scope.split(' '), ...caller }
    : { kind: 'customer', entityId: sub, ...caller };
}
