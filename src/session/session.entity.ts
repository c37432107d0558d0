import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { CustomerEntity } from '../customer/customer.entity.js';
import { AgentSession } from './agent/agent-session.entity.js';
import { Browser } from './browser.entity.js';
import { RedeemableSession } from './redeemable-session.js';

/**
 * What a session is:
 *
 * - `own`: a browser created its customer, or a client did by the anonymous grant, which gave it a refresh token.
 * - `sign_in`: a user signed in in a browser.
 * - `code`: an unredeemed transfer token. Its redemption changes the kind of the row to one of the next three.
 * - `moved`: a redeemed transfer token that left no device. It has one access token.
 * - `transferred`: a browser that the customer was transferred to.
 * - `refresh`: a refresh token of a device that the customer was transferred to.
 * - `proof`: a proof of an extension, with the access tokens that it was redeemed for. The id is a hash of the text
 *   that the extension stores.
 * - `token`: an access token without a session that something was made with. The id is the `jti` of the token.
 */
export type SessionKind = 'own' | 'sign_in' | 'code' | 'moved' | 'transferred' | 'refresh' | 'proof' | 'token';

/** One thing with which a device, or the holder of a code, acts for a customer (protocol §3.10). */
@Entity('session')
@Index('session_of_browser', ['browserId', 'organizationId', 'groupId'], { unique: true })
@Index('session_code_hash', ['codeHash'], { unique: true })
@Index('session_refresh_id_hash', ['refreshIdHash'], { unique: true })
export class Session extends RedeemableSession {
  /** The claim `sid` of its access tokens. */
  @PrimaryColumn('varchar', { length: 64 })
  id!: string;

  @Column('varchar', { length: 16 })
  kind!: SessionKind;

  /** Empty in a proof that an agent made for no certain customer, until it is redeemed. */
  @Index('session_customer_id')
  @Column('varchar', { name: 'customer_id', length: 36 })
  customerId!: string;

  /**
   * No foreign key: the transaction that deletes a customer deletes its sessions, and each INSERT writes its row first.
   */
  @ManyToOne(() => CustomerEntity, { createForeignKeyConstraints: false })
  @JoinColumn({ name: 'customer_id' })
  readonly customer?: never;

  /**
   * The browser that the session leads to its customer; `null` for other kinds, and if the browser forgot the customer.
   */
  @Column('varchar', { name: 'browser_id', length: 36, nullable: true })
  browserId!: string | null;

  @ManyToOne(() => Browser, { createForeignKeyConstraints: false })
  @JoinColumn({ name: 'browser_id' })
  readonly browser?: never;

  /** Of the customer, in a session that lives as long as a setting of the organization says; otherwise `null`. */
  @Column('varchar', { name: 'organization_id', length: 36, nullable: true })
  organizationId!: string | null;

  /** Empty if the customer belongs to no group; `null` if `organization_id` is. */
  @Column('varchar', { name: 'group_id', length: 64, nullable: true })
  groupId!: string | null;

  /** The session of the same customer whose token made this one. No foreign key: MySQL limits the depth of cascades. */
  @Column('varchar', { name: 'parent_id', length: 64, nullable: true })
  parentId!: string | null;

  /** The epoch of the parent at that time. */
  @Column('integer', { name: 'parent_epoch', nullable: true })
  parentEpoch!: number | null;

  /** The number of transfers and proofs in the chain that led here. */
  @Column('integer')
  depth!: number;

  /** The claim `ep` of its access tokens. It rises when they end. */
  @Column('integer')
  epoch!: number;

  /** The client of the code or the refresh token; of a proof, the client of the token that made it. */
  @Column('varchar', { name: 'client_id', length: 128, nullable: true })
  clientId!: string | null;

  /** The agent's session that began the chain, if an agent did. This session ends with it. */
  @Index('session_agent_session_id')
  @Column('varchar', { name: 'agent_session_id', length: 64, nullable: true })
  agentSessionId!: string | null;

  @ManyToOne(() => AgentSession, { createForeignKeyConstraints: false })
  @JoinColumn({ name: 'agent_session_id' })
  readonly agentSession?: never;

  /** The epoch of the agent's session at that time. */
  @Column('integer', { name: 'agent_epoch', nullable: true })
  agentEpoch!: number | null;

  /** When a proof expires. Its access tokens may expire later. `null` for other kinds. */
  @Column('datetime', { name: 'redeemable_until', precision: 3, nullable: true })
  redeemableUntil!: Date | null;

  /** When the client used the refresh token last. */
  @Column('datetime', { name: 'used_at', precision: 3, nullable: true })
  usedAt!: Date | null;

  /** The last day on which a device used the session, in days since 1970 (UTC); `null` if it is no device. */
  @Column('integer', { name: 'seen_day', nullable: true })
  seenDay!: number | null;

  /**
   * The day of the last sign-in, or of the transfer to a user's customer; `null` for a device that needs no sign-in.
   */
  @Column('integer', { name: 'signed_in_day', nullable: true })
  signedInDay!: number | null;

  @Column('datetime', { name: 'created_at', precision: 3 })
  createdAt!: Date;

  /** Ends what the session may begin: a visit, a rotation, a redemption, a child. Its access tokens do not end then. */
  @Index('session_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;
}
