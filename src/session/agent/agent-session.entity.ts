import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { RedeemableSession } from '../redeemable-session.js';

/**
 * What a session of an agent is:
 *
 * - `page`: the agent has signed in at the authorization page. The id is a hash of the secret in the cookie.
 * - `code`: an unredeemed authorization code. Its redemption changes the kind of the row to `refresh`.
 * - `refresh`: a refresh token, with the access tokens that it renews.
 * - `token`: one access token without a refresh token.
 * - `client`: the access tokens that a client gets with its own credentials. It does not expire.
 * - `issuer`: a token of a trusted issuer, which was used for a customer or ended. The id is a hash of the token.
 */
export type AgentSessionKind = 'page' | 'code' | 'refresh' | 'token' | 'client' | 'issuer';

/** Verifiers need not learn of the end of such a session, and nothing refers to it. */
export const KINDS_WITHOUT_TOKENS: AgentSessionKind[] = ['page', 'code'];

/**
 * One thing with which an application, or the page, acts for an agent (protocol §3.11). What an agent obtains for a
 * customer refers to the session with which it was obtained, and ends with it. So a session that has expired stays as
 * long as something refers to it.
 */
@Entity('agent_session')
@Index('agent_session_code_hash', ['codeHash'], { unique: true })
@Index('agent_session_refresh_id_hash', ['refreshIdHash'], { unique: true })
export class AgentSession extends RedeemableSession {
  /** The claim `sid` of its access tokens. */
  @PrimaryColumn('varchar', { length: 64 })
  id!: string;

  @Column('varchar', { length: 16 })
  kind!: AgentSessionKind;

  /** The agent, or the `sub` of a trusted issuer's token. */
  @Index('agent_session_agent_id')
  @Column('varchar', { name: 'agent_id', length: 255 })
  agentId!: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  /** The application; empty for the page. */
  @Column('varchar', { name: 'client_id', length: 255 })
  clientId!: string;

  /** The trusted issuer; `null` for an agent of this service. */
  @Column('varchar', { length: 255, nullable: true })
  issuer!: string | null;

  /** The granted scopes, separated by spaces; `null` for the page and a trusted issuer's token. */
  @Column('varchar', { length: 1000, nullable: true })
  scope!: string | null;

  /** The claim `ep` of its access tokens. It rises when they end, with what was obtained with them. */
  @Column('integer')
  epoch!: number;

  /** The redirect URI of the authorization request (RFC 6749 §4.1.3). */
  @Column('varchar', { name: 'redirect_uri', length: 2000, nullable: true })
  redirectUri!: string | null;

  @Column('datetime', { name: 'created_at', precision: 3 })
  createdAt!: Date;

  /** Ends what the session may begin: a request of the page, a redemption, a rotation. */
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;
}
