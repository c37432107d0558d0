import { Column, DeleteDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { Agent } from './agent.entity.js';
import type { AssertionKeys } from './assertion-keys.js';
import type { GrantSettings } from './organization.entity.js';
import type { PreviousSecret } from './previous-secrets.js';
import { isBelow } from './redirect-uri.js';

/** Where a client runs: in browsers, on servers, or on devices. */
export type ClientType = 'web' | 'server' | 'native';

/** An application that requests tokens: a client in RFC 6749. */
@Entity('client_application')
@Index('client_application_revision', ['revision', 'clientId'])
@Index('client_application_of_organization', ['organizationId', 'clientId'])
@Index('client_application_agent_id', ['agentId'])
export class ClientApplication {
  @PrimaryColumn('varchar', { name: 'client_id', length: 128 })
  clientId!: string;

  @Column('varchar', { length: 200 })
  name!: string;

  /** Determines the `response_type` at the authorization page (protocol §8.3). */
  @Column('varchar', { name: 'client_type', length: 16 })
  clientType!: ClientType;

  /** The organization of a private client; `null` for a public client, which each organization admits or not. */
  @Column('varchar', { name: 'organization_id', length: 36, nullable: true })
  organizationId!: string | null;

  /** SHA-256 of the secret of a server application. @internal */
  @Column('varchar', { name: 'secret_hash', length: 64, nullable: true })
  secretHash!: string | null;

  /** Replaced secrets that are still valid. @internal */
  @Column('simple-json', { name: 'previous_secrets', nullable: true })
  previousSecrets!: PreviousSecret[] | null;

  /** The keys of the assertions by which it authenticates; `null` if there are none. @internal */
  @Column('simple-json', { name: 'assertion_keys', nullable: true })
  assertionKeys!: AssertionKeys | null;

  @Column('simple-json', { name: 'redirect_uris' })
  redirectUris!: string[];

  /**
   * `prefix` also admits URIs below the registered ones. It applies to customer grants, never to the authorization
   * page.
   */
  @Column('varchar', { name: 'redirect_uri_match', length: 16 })
  redirectUriMatch!: 'exact' | 'prefix';

  /** Origins in addition to those of the redirect URIs. */
  @Column('simple-json')
  origins!: string[];

  /** The grants that the client may use; `null`: all customer grants except those with `optIn`. */
  @Column('simple-json', { name: 'grant_types', nullable: true })
  grantTypes!: string[] | null;

  /** The scopes that agents can grant to the client. */
  @Column('simple-json')
  scopes!: string[];

  @Column('simple-json')
  grants!: GrantSettings;

  /**
   * The agent for whom the client gets tokens with its own credentials. `null` again if this agent is deleted.
   * @internal
   */
  @Column('varchar', { name: 'agent_id', length: 36, nullable: true })
  agentId!: string | null;

  /** Only read where an entry is shown. @internal */
  @ManyToOne(() => Agent, { nullable: true, createForeignKeyConstraints: false })
  @JoinColumn({ name: 'agent_id' })
  agent?: Agent | null;

  /** Whether a registry file brought the entry. @internal */
  @Column('boolean', { name: 'from_file' })
  fromFile!: boolean;

  /** Whether requests are refused. Nothing is deleted, and it can be taken back. @internal */
  @Column('boolean')
  suspended!: boolean;

  /** Tokens that were issued up to this time ended with a suspension. @internal */
  @Column('datetime', { name: 'issued_before', precision: 3, nullable: true })
  issuedBefore!: Date | null;

  /** The number of the last change of the entry (registry-revision.ts). @internal */
  @Column('integer', { default: 0 })
  revision!: number;

  /** When the entry was deleted. TypeORM leaves out such a row unless `withDeleted` asks for it. @internal */
  @DeleteDateColumn({ name: 'deleted_at', type: 'datetime', precision: 3, nullable: true })
  deletedAt!: Date | null;

  /** The origins whose pages may send requests with this client id. */
  get allOrigins(): string[] {
    const ofRedirects = this.redirectUris.map((uri) => new URL(uri).origin).filter((origin) => origin !== 'null');
    return [...new Set([...ofRedirects, ...this.origins])];
  }

  /**
   * A private client is usable in its own organization only: this method decides for agents, and `Organization.admits`
   * for customers.
   */
  usableIn(organizationId: string): boolean {
    return this.organizationId === null || this.organizationId === organizationId;
  }

  /** Whether the client may use a grant. A grant with `optIn` must be listed. */
  mayUse(grantType: string, optIn = false): boolean {
    return this.grantTypes === null ? !optIn : this.grantTypes.includes(grantType);
  }

  /**
   * Whether a redirect URI equals a registered one, character for character, or lies below one if the match is
   * `prefix`.
   */
  admitsRedirectUri(uri: string): boolean {
    if (this.redirectUris.includes(uri)) return true;
    return this.redirectUriMatch === 'prefix' && this.redirectUris.some((registered) => isBelow(uri, registered));
  }
}
