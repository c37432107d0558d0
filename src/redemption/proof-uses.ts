import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import { insertIgnoreStatement, writeStatement } from '../platform/database/statement.js';
import { ProofUse } from './proof-use.entity.js';

/** The clock of another process, or of the issuer of the proof, may differ by as much. */
export const PROOF_CLOCK_SKEW_MS = 30_000;

const FIRST_USE = insertIgnoreStatement({ into: ProofUse, columns: ['hash', 'uses', 'expires_at'] });
/** Another proof with the same hash, which ends later, is counted until then. */
const FURTHER_USE = writeStatement<[end: Date | null, end: Date | null, hash: string, limit: number]>(
  `UPDATE proof_use SET uses = uses + 1,
    expires_at = CASE WHEN expires_at IS NULL OR expires_at > ? THEN expires_at ELSE ? END
    WHERE hash = ? AND uses < ?`,
);
const GIVE_BACK = writeStatement<[hash: string]>('UPDATE proof_use SET uses = uses - 1 WHERE hash = ? AND uses > 0');

/** Counts how often proofs of grants and assertions of clients are used, in all processes together. */
@Injectable()
export class ProofUses {
  constructor(private readonly database: Database) {}

  /**
   * One statement decides between parallel requests.
   *
   * @param end when the proof ends, in milliseconds since 1970, after which the count is deleted; `Infinity`: never
   * @returns `false` if the proof has been used `limit` times
   */
  async count(hash: string, limit: number, end: number): Promise<boolean> {
    const kept = end === Infinity ? null : new Date(end + PROOF_CLOCK_SKEW_MS);
    if ((await this.database.execute(FIRST_USE, [hash, 1, kept])) > 0) return true;
    return (await this.database.execute(FURTHER_USE, [kept, kept, hash, limit])) > 0;
  }

  giveBack(hash: string): Promise<number> {
    return this.database.execute(GIVE_BACK, [hash]);
  }
}
