import { setImmediate } from 'node:timers/promises';
import type { AccessTokenClaims } from './claims.js';
import type { TokenErrorCode } from './errors.js';
import type { FeedEntry } from './feed-response.js';
import { RevocationTable } from './revocation-table.js';

/**
 * How long an entry stays after its end. The clock may then be set back by this time without a revocation being missed.
 */
const EXPIRY_MARGIN_MS = 60_000;
/** Expired entries are deleted at most this often, because each deletion reads the whole list. */
const PURGE_INTERVAL_MS = 60_000;

/** Why some entry of the feed is not applied. */
export type SkippedReason = 'unknown_entry' | 'too_many_entries';

/** The revocations that are in force. */
export class RevocationList {
  /** The texts are a kind and a value of the feed, and the integers are the limits. */
  private readonly table: RevocationTable;
  private purgedAt = Number.NEGATIVE_INFINITY;
  private skipped: { reason: SkippedReason; until: number } | undefined;

  constructor(maxEntries: number) {
    this.table = new RevocationTable(maxEntries);
  }

  get size(): number {
    return this.table.size;
  }

  /** Adds entries. An entry that is known already becomes at least as strict as before. */
  add(entries: readonly FeedEntry[]): void {
    for (const { kind, value, limit, expiresAt } of entries) {
      if (limit === undefined) this.skip(expiresAt, 'unknown_entry');
      else if (!this.table.raise(`${kind} ${value}`, limit, Math.ceil(expiresAt / 1000)))
        this.skip(expiresAt, 'too_many_entries');
    }
  }

  /**
   * Deletes expired entries, if the last deletion was some time ago. Requests of the process are served between the
   * steps of a deletion.
   */
  async purge(now: number): Promise<void> {
    if (now - this.purgedAt < PURGE_INTERVAL_MS) return;
    this.purgedAt = now;
    for (const _ of this.table.deleteExpired((now - EXPIRY_MARGIN_MS) / 1000)) await setImmediate();
  }

  /** Whether the clock was set back so far that deleted entries are in force again. */
  isIncompleteAt(now: number): boolean {
    return now < this.purgedAt - EXPIRY_MARGIN_MS;
  }

  /** Why an entry that is in force is not applied; `undefined` if all are applied. */
  skippedReason(now: number): SkippedReason | undefined {
    return this.skipped && now < this.skipped.until ? this.skipped.reason : undefined;
  }

  /** Deleted entries come again, because the feed sends the full list next. */
  startOver(): void {
    this.purgedAt = Number.NEGATIVE_INFINITY;
  }

  /** Why a token has ended, by the rule of the service; `undefined` if the token has not ended. */
  endedReason(claims: AccessTokenClaims): TokenErrorCode | undefined {
    const { jti, sid, ep, sub, gen, client_id, organization_id, iat, act } = claims;
    if (this.ends('token', jti) || (sid !== undefined && this.ends('session', sid, ep))) return 'revoked';
    if (act && this.ends('session', act.sid, act.ep)) return 'ancestor_revoked';
    if (this.ends('client', client_id, iat)) return 'client_revoked';
    if (this.ends('organization', organization_id, iat)) return 'organization_suspended';
    return this.ends('subject', sub, gen) ? 'customer_generation' : undefined;
  }

  /** Whether an entry ends the tokens with this number. */
  private ends(kind: string, value: string, number = 0): boolean {
    return number < (this.table.get(`${kind} ${value}`) ?? 0);
  }

  private skip(expiresAt: number, reason: SkippedReason): void {
    this.skipped = { reason, until: Math.max(expiresAt, this.skipped?.until ?? 0) };
  }
}
