import type { AccessTokenClaims } from './claims.js';
import type { TokenErrorCode } from './errors.js';
import type { FeedEntry, RevocationKind } from './feed-response.js';

/**
 * How long an entry stays after its end. The clock may then be set back by this time without a revocation being missed.
 */
const EXPIRY_MARGIN_MS = 60_000;
/** Expired entries are deleted at most this often, because each deletion reads the whole list. */
const PURGE_INTERVAL_MS = 60_000;

type Revocation = Pick<FeedEntry, 'issuedBefore' | 'generation' | 'expiresAt'>;

/** Why some entry of the feed is not applied. */
export type SkippedReason = 'unknown_entry' | 'too_many_entries';

/** The revocations that are in force. */
export class RevocationList {
  private readonly revocations: Record<RevocationKind, Map<string, Revocation>> = {
    jti: new Map(),
    family: new Map(),
    client: new Map(),
    subject: new Map(),
  };
  private purgedAt = Number.NEGATIVE_INFINITY;
  private skipped: { reason: SkippedReason; until: number } | undefined;

  constructor(private readonly maxEntries: number) {}

  get size(): number {
    return Object.values(this.revocations).reduce((sum, { size }) => sum + size, 0);
  }

  /** Adds entries. An entry that is known already becomes at least as strict as before. */
  add(entries: readonly FeedEntry[], now: number): void {
    for (const entry of entries) {
      if (entry.kind === undefined) this.skip(entry, 'unknown_entry');
      else this.addRevocation(entry.kind, entry, now);
    }
  }

  /** Deletes expired entries, if the last deletion was some time ago. */
  purge(now: number): void {
    if (now - this.purgedAt < PURGE_INTERVAL_MS) return;
    this.purgedAt = now;
    for (const ofKind of Object.values(this.revocations)) {
      for (const [value, { expiresAt }] of ofKind) if (expiresAt + EXPIRY_MARGIN_MS <= now) ofKind.delete(value);
    }
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
    const { jti: tokens, family: families, client: clients } = this.revocations;
    const isListed = (id: string) => tokens.has(id) || families.has(id);
    const issuedAt = iat * 1000;

    if (tokens.has(jti)) return 'revoked';
    if (families.has(jti) || isListed(family)) return 'family_revoked';
    if (ancestors.some(isListed)) return 'ancestor_revoked';
    if (issuedAt <= (clients.get(client_id)?.issuedBefore ?? Number.NEGATIVE_INFINITY)) return 'client_revoked';
    const generationReason = claims.aud === 'agent-api' ? 'agent_generation' : 'customer_generation';
    return (
      this.endedSubjectReason({ sub, gen, issuedAt }, generationReason) ??
      // An agent of a trusted issuer has no generation in the service.
      (act?.gen === undefined
        ? undefined
        : this.endedSubjectReason({ sub: act.sub, gen: act.gen, issuedAt }, 'agent_generation'))
    );
  }

  private endedSubjectReason(
    { sub, gen, issuedAt }: { sub: string; gen: number; issuedAt: number },
    generationReason: TokenErrorCode,
  ): TokenErrorCode | undefined {
    const revocation = this.revocations.subject.get(sub);
    if (revocation === undefined) return undefined;
    if (gen < revocation.generation) return generationReason;
    return issuedAt <= revocation.issuedBefore ? 'subject_revoked' : undefined;
  }

  private addRevocation(kind: RevocationKind, entry: FeedEntry, now: number): void {
    const ofKind = this.revocations[kind];
    const known = ofKind.get(entry.value);
    if (!known && this.size >= this.maxEntries) this.purge(now);
    if (!known && this.size >= this.maxEntries) return this.skip(entry, 'too_many_entries');
    ofKind.set(entry.value, {
      issuedBefore: Math.max(entry.issuedBefore, known?.issuedBefore ?? Number.NEGATIVE_INFINITY),
      generation: Math.max(entry.generation, known?.generation ?? 0),
      expiresAt: Math.max(entry.expiresAt, known?.expiresAt ?? 0),
    });
  }

  private skip({ expiresAt }: FeedEntry, reason: SkippedReason): void {
    this.skipped = { reason, until: Math.max(expiresAt, this.skipped?.until ?? 0) };
  }
}
