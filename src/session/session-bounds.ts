import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock, dayOf } from '../platform/clock.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { AgentSessions } from './agent/agent-sessions.js';
import type { SessionKind } from './session.entity.js';
import type { StoredSession } from './session.statements.js';
import { SessionEndings } from './session-endings.js';
import { Sessions } from './sessions.js';

const MAX_CODES = 60;
const MAX_TRANSFER_SESSIONS = 200;
const MAX_DEVICES = 20;
const MAX_OWN_BROWSERS = 20;
const MAX_SIGNED_IN_BROWSERS = 100;
/** A device by transfer that was used within these days is not replaced. */
const USED_DAYS = 30;
/**
 * How long a client waits before it may try again. A transfer token that expires, or the end of a device, makes room.
 */
const RETRY_AFTER_SECONDS = 60;

const BY_TRANSFER: SessionKind[] = ['code', 'moved', 'transferred', 'refresh', 'proof'];
const DEVICES: SessionKind[] = ['transferred', 'refresh'];

/**
 * Bounds what a customer, and a thief of one of its tokens, can make (protocol §3.10). The sessions are those that the
 * transaction has read after it has locked the customer's row, so that parallel requests cannot exceed a bound
 * together.
 */
@Injectable()
export class SessionBounds {
  constructor(
    private readonly sessions: Sessions,
    private readonly endings: SessionEndings,
    private readonly agentSessions: AgentSessions,
    private readonly clock: Clock,
  ) {}

  /** @throws OAuthError 429 if the customer has too many transfer tokens, or too many sessions by transfer */
  async assertMayTransfer(manager: EntityManager, all: StoredSession[]): Promise<void> {
    const codes = this.ofKinds(all, ['code']);
    if (codes.length >= MAX_CODES && (await this.inForce(manager, codes)).length >= MAX_CODES)
      throw OAuthError.rateLimited(RETRY_AFTER_SECONDS, 'transfer_tokens');
    await this.assertMayProve(manager, all);
  }

  /** @throws OAuthError 429 if the customer has too many sessions by transfer or proof */
  async assertMayProve(manager: EntityManager, all: StoredSession[]): Promise<void> {
    const byTransfer = this.ofKinds(all, BY_TRANSFER);
    if (byTransfer.length < MAX_TRANSFER_SESSIONS) return;
    if ((await this.inForce(manager, byTransfer)).length >= MAX_TRANSFER_SESSIONS)
      throw OAuthError.rateLimited(RETRY_AFTER_SECONDS, 'transfers_in_force');
  }

  /**
   * Makes room for a browser or a refresh token by transfer: the device used longest ago is replaced.
   *
   * @throws OAuthError 429 if it was used within 30 days
   */
  async makeRoom(manager: EntityManager, customerId: string): Promise<void> {
    const devices = await this.ofFull(manager, customerId, DEVICES, MAX_DEVICES);
    const oldest = longestUnused(devices);
    if (!oldest) return;
    if (!this.isUnused(oldest)) throw OAuthError.tooManyDevices(RETRY_AFTER_SECONDS);
    await this.endings.replaceIn(manager, oldest);
  }

  /** Makes room for a browser in which a user signs in. The one used longest ago is always replaced. */
  async makeRoomForSignIn(manager: EntityManager, customerId: string): Promise<void> {
    const browsers = await this.ofFull(manager, customerId, ['sign_in'], MAX_SIGNED_IN_BROWSERS);
    await this.replace(manager, longestUnused(browsers));
  }

  /**
   * Makes room for a copy of a session in a new browser. The copied session itself is never replaced.
   *
   * @returns false if there is none, so that nothing is copied
   */
  async makeRoomForCopy(
    manager: EntityManager,
    { id, kind, customer_id: customerId }: Pick<StoredSession, 'id' | 'kind' | 'customer_id'>,
  ): Promise<boolean> {
    const isDevice = DEVICES.includes(kind);
    const max = kind === 'sign_in' ? MAX_SIGNED_IN_BROWSERS : MAX_OWN_BROWSERS;
    const sessions = isDevice
      ? await this.ofFull(manager, customerId, DEVICES, MAX_DEVICES)
      : await this.ofFull(manager, customerId, [kind], max);
    const oldest = longestUnused(sessions.filter((session) => session.id !== id));
    if (isDevice && oldest && !this.isUnused(oldest)) return false;
    await this.replace(manager, oldest);
    return true;
  }

  private async replace(manager: EntityManager, session: StoredSession | undefined): Promise<void> {
    if (session) await this.endings.replaceIn(manager, session);
  }

  /** The sessions of some kinds in force, locked, if there are `max` or more; otherwise none. */
  private async ofFull(
    manager: EntityManager,
    customerId: string,
    kinds: SessionKind[],
    max: number,
  ): Promise<StoredSession[]> {
    if (this.devicesOf(await this.sessions.allOf(manager, customerId), kinds).length < max) return [];
    const locked = this.devicesOf(await this.sessions.lockAllOf(manager, customerId), kinds);
    const inForce = await this.inForce(manager, locked);
    return inForce.length < max ? [] : inForce;
  }

  /** Without the sessions that their browsers or clients forgot, which are no devices any more. */
  private devicesOf(all: StoredSession[], kinds: SessionKind[]): StoredSession[] {
    return this.ofKinds(all, kinds).filter(
      ({ browser_id, refresh_id_hash }) => (browser_id ?? refresh_id_hash) !== null,
    );
  }

  private ofKinds(all: StoredSession[], kinds: SessionKind[]): StoredSession[] {
    const now = this.clock.now();
    return all.filter(({ kind, expires_at }) => kinds.includes(kind) && timeOf(expires_at) > now);
  }

  /** Leaves out the sessions that have ended with the session of an agent. Their rows stay until they expire. */
  private async inForce(manager: EntityManager, sessions: StoredSession[]): Promise<StoredSession[]> {
    const epochs = await this.agentSessions.epochsOf(
      manager,
      sessions.flatMap(({ agent_session_id }) => agent_session_id ?? []),
    );
    return sessions.filter(({ agent_session_id: id, agent_epoch }) => id === null || epochs.get(id) === agent_epoch);
  }

  private isUnused({ seen_day }: StoredSession): boolean {
    return (seen_day ?? 0) < dayOf(this.clock.now()) - USED_DAYS;
  }
}

function longestUnused(sessions: StoredSession[]): StoredSession | undefined {
  const [first, ...others] = sessions;
  return others.reduce(
    (oldest, session) => (oldest && isUsedBefore(session, oldest) ? session : oldest),
    first as StoredSession | undefined,
  );
}

/** Whether a session was used before another one, or on the same day and is older. */
function isUsedBefore(session: StoredSession, other: StoredSession): boolean {
  const days = (session.seen_day ?? 0) - (other.seen_day ?? 0);
  return days < 0 || (days === 0 && timeOf(session.created_at) < timeOf(other.created_at));
}
