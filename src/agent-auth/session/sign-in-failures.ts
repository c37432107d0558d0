import { Injectable } from '@nestjs/common';
import { In, LessThan, MoreThan } from 'typeorm';
import { SigningKeys } from '../../access-token/signing-keys.js';
import { Limits, SIGN_IN } from '../../oauth/limits.js';
import { Clock } from '../../platform/clock.js';
import type { RateLimitRule } from '../../platform/configuration/rate-limit-rule.js';
import { Database } from '../../platform/database/database.js';
import { keysOfIp, type LimitKey } from '../../platform/network.js';
import { derivedSecret } from '../../platform/secret.js';
import { SignInFailure } from './sign-in-failure.entity.js';

const OF_ACCOUNT_IN_NETWORK: RateLimitRule = { count: 10, seconds: 900 };
const OF_NETWORK: RateLimitRule = { count: 60, seconds: 900 };
const OF_ACCOUNT: RateLimitRule = { count: 100, seconds: 3_600 };
/** The clock of another process may be behind. */
const RETENTION_MARGIN_MS = 30_000;

/** One count towards which an attempt counts. */
interface Count {
  hash: string;
  max: number;
  rule: RateLimitRule;
  /** The end of the window. */
  endMs: number;
}

/**
 * Limits the guessing of passwords (protocol §6.4). The counts are in the database, so all processes share them. An
 * attempt counts before its password is checked, so parallel attempts cannot exceed a bound. One that did not fail is
 * given back.
 */
@Injectable()
export class SignInFailures {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly keys: SigningKeys,
    private readonly limits: Limits,
  ) {}

  /**
   * @param isKnownBrowser whether the account signed in with this browser before: the bound of the account, which
   *   strangers can reach, then does not apply
   * @returns what gives the attempt back
   * @throws OAuthError 429 if a bound is reached. The attempt then counts for none
   */
  async count(email: string, ip: string, isKnownBrowser: boolean): Promise<() => Promise<void>> {
    const counts = this.countsOf(email, ip, isKnownBrowser);
    await this.prepare(counts);
    const counted: string[] = [];
    const { manager } = this.database;
    for (const { hash, max, rule } of counts) {
      const { affected } = await manager.increment(SignInFailure, { hash, failures: LessThan(max) }, 'failures', 1);
      if (affected !== 1) {
        await this.giveBack(counted);
        throw this.limits.rejected(SIGN_IN, rule);
      }
      counted.push(hash);
    }
    return () => this.giveBack(counted);
  }

  private async giveBack(hashes: string[]): Promise<void> {
    const { manager } = this.database;
    for (const hash of hashes) await manager.decrement(SignInFailure, { hash, failures: MoreThan(0) }, 'failures', 1);
  }

  /** Rejects most attempts without a write, and inserts missing rows. */
  private async prepare(counts: Count[]): Promise<void> {
    const { manager } = this.database;
    const rows = await manager.findBy(SignInFailure, { hash: In(counts.map(({ hash }) => hash)) });
    const failures = new Map(rows.map((row) => [row.hash, row.failures]));
    for (const { hash, max, rule } of counts)
      if ((failures.get(hash) ?? 0) >= max) throw this.limits.rejected(SIGN_IN, rule);
    const missing = counts
      .filter(({ hash }) => !failures.has(hash))
      .map(({ hash, endMs }) => ({ hash, failures: 0, expiresAt: new Date(endMs + RETENTION_MARGIN_MS) }));
    if (missing.length > 0)
      await manager.createQueryBuilder().insert().into(SignInFailure).values(missing).orIgnore().execute();
  }

  private countsOf(email: string, ip: string, isKnownBrowser: boolean): Count[] {
    return [
      ...keysOfIp(ip, email).map((key) => this.countOf('account in network', key, OF_ACCOUNT_IN_NETWORK)),
      ...keysOfIp(ip).map((key) => this.countOf('network', key, OF_NETWORK)),
      ...(isKnownBrowser ? [] : [this.countOf('account', { key: email, factor: 1 }, OF_ACCOUNT)]),
    ];
  }

  private countOf(kind: string, { key, factor }: LimitKey, rule: RateLimitRule): Count {
    const [secret] = this.keys.derivedSecrets('sign-in failures') as [string];
    const windowMs = rule.seconds * 1000;
    const endMs = (Math.floor(this.clock.now() / windowMs) + 1) * windowMs;
    return { hash: derivedSecret(secret, `${kind}\n${endMs}\n${key}`), max: factor * rule.count, rule, endMs };
  }
}
