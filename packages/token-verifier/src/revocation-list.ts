import { setImmediate } from 'node:timers/promises';
import type { AccessTokenClaims } from './claims.js';
import type { TokenErrorCode } from './errors.js';
import type { FeedEntry, RevocationKind } from './feed-response.js';
import { RevocationTable } from './revocation-table.js';

/**
 * How long an entry stays after its end. The clock may then be set back by this time without a revocation being missed.
 */
const EXPIRY_MARGIN_MS = 60_000;
/** Expired entries are deleted at most this often, because each deletion reads the whole list. */
const PURGE_INTERVAL_MS = 60_000;

/** Why some entry of the feed is not applied. */
export type SkippedReason = 'unknown_entry' | 'too_many_entries';

/** The integers of the kinds `jti` and `family`, which have one entry for the same value. */
const [FAMILY, JTI] = [1, 2];

/** The revocations that are in force. */
export class RevocationList {
  /**
   * The keys are `id`, `client` or `subject`, and a value of the feed. The integers are `FAMILY` or `JTI`, a time in
   * seconds, and a generation.
   */
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
    for (const entry of entries) {
      if (entry.kind === undefined) this.skip(entry, 'unknown_entry');
      else if (!this.addRevocation(entry.kind, entry)) this.skip(entry, 'too_many_entries');
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
    const { jti, sub, gen = 0, client_id, iat, ancestors = [], act } = claims;
    const family = jti.split('.', 1)[0] as string;
    const isListed = (id: string) => this.table.get(`id ${id}`) !== undefined;

    const ownEntry = this.table.get(`id ${jti}`);
    if (ownEntry !== undefined) return ownEntry === JTI ? 'revoked' : 'family_revoked';
    if (family !== jti && isListed(family)) return 'family_revoked';
    if (ancestors.some(isListed)) return 'ancestor_revoked';
    const clientEndedUntil = this.table.get(`client ${client_id}`);
    if (clientEndedUntil !== undefined && Math.floor(iat) <= clientEndedUntil) return 'client_revoked';
    if (this.hasHigherGeneration(sub, gen))
      return claims.aud === 'agent-api' ? 'agent_generation' : 'customer_generation';
    // An agent of a trusted issuer has no generation in the service.
    if (act?.gen !== undefined && this.hasHigherGeneration(act.sub, act.gen)) return 'agent_generation';
    return undefined;
  }

  private hasHigherGeneration(sub: string, gen: number): boolean {
    return gen < (this.table.get(`subject ${sub}`) ?? 0);
  }

  /** Returns false if the list is full. */
  private addRevocation(kind: RevocationKind, { value, issuedBefore, generation, expiresAt }: FeedEntry): boolean {
    const raise = (key: string, integer: number) =>
      this.table.raise(`${key} ${value}`, integer, Math.ceil(expiresAt / 1000));
    if (kind === 'jti') return raise('id', JTI);
    if (kind === 'family') return raise('id', FAMILY);
    if (kind === 'subject') return raise('subject', generation);
    return raise('client', Math.floor(issuedBefore / 1000));
  }

  private skip({ expiresAt }: FeedEntry, reason: SkippedReason): void {
    this.skipped = { reason, until: Math.max(expiresAt, this.skipped?.until ?? 0) };
  }
}
