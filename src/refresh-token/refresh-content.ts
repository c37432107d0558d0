/** The access that a refresh family gives. */
export interface RefreshContent {
  clientId: string;
  agentId: string;
  organizationId: string;
  scope: string;
  /** The generation of the agent when it granted access. */
  generation: number;
}

export interface Refreshed extends RefreshContent {
  /** The family's id; the `jti` of its access tokens begins with it. */
  family: string;
  refreshToken: string;
}

/** The client that presents a refresh token. */
export interface RefreshingClient {
  clientId: string;
  /** Whether the client has authenticated with its secret. */
  isAuthenticated: boolean;
}
