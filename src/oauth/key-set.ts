import type { webcrypto } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { JSONWebKeySet, JWSHeaderParameters, LocalJWKSet } from 'jose';
import type { Clock } from '../platform/clock.js';
import { loadWhenUsed } from '../platform/load-when-used.js';
import type { KeySource } from './key-sources.js';
import { OAuthError } from './oauth-error.js';

export const jose = () => loadWhenUsed<typeof import('jose')>('jose');

/** Finds the key that the header of a JWS names. */
type FindKey = (header: { alg?: string; kid?: string }) => Promise<webcrypto.CryptoKey>;

/** How long after a load an unknown key id causes no other load. */
const RELOAD_INTERVAL_MS = 60_000;
const FAILURE_PAUSE_MS = 1_000;

/**
 * The public keys of an issuer, which may change (RFC 7517 §5).
 *
 * The first token that needs the keys causes a load. All tokens that need a load at the same time share one, and other
 * tokens do not wait for it. A token with an unknown key id causes a load at most once a minute. For 1 second after a
 * failed load no other load starts. After one, callers with known keys of a file do not wait for the next load.
 */
export class KeySet {
  private readonly logger = new Logger(KeySet.name);
  private keys: LocalJWKSet | undefined;
  private loading: Promise<void> | undefined;
  private loadedAt = Number.NEGATIVE_INFINITY;
  private failedAt = Number.NEGATIVE_INFINITY;
  private failure: unknown;

  constructor(
    private readonly source: KeySource,
    private readonly clock: Clock,
  ) {}

  /**
   * Finds the key that the header of a JWS names. `jwtVerify` of the package jose accepts this function as a key.
   *
   * The promise rejects with an error of jose if the set has no such key, and with OAuthError `temporarily_unavailable`
   * while the keys cannot be loaded.
   */
  readonly getKey: FindKey = async (header) => {
    const { JWKSNoMatchingKey, JWKSMultipleMatchingKeys, JOSENotSupported } = jose().errors;
    const findKey = () => (this.keys as LocalJWKSet)(header as JWSHeaderParameters);
    try {
      if (!this.isWithin(this.loadedAt, this.source.maxAgeMs)) await this.renew();
      return await findKey().catch(async (error) => {
        const mayLoad = error instanceof JWKSNoMatchingKey;
        if (!mayLoad || this.isWithin(this.loadedAt, RELOAD_INTERVAL_MS)) throw error;
        await this.load(); // the issuer may have published the key since the last load
        return findKey();
      });
    } catch (error) {
      const passed = [JWKSNoMatchingKey, JWKSMultipleMatchingKeys, JOSENotSupported];
      if (passed.some((each) => error instanceof each)) throw error;
      throw OAuthError.unavailable(error); // no load, or the key that the issuer publishes under this id is unusable
    }
  };

  private async renew(): Promise<void> {
    const { keepsKeys } = this.source;
    const renewal = this.load().catch((error) => {
      if (!this.keys || !keepsKeys) throw error;
    });
    if (!this.keys || !keepsKeys || this.failure === undefined) await renewal;
  }

  private async load(): Promise<void> {
    if (this.isWithin(this.failedAt, FAILURE_PAUSE_MS)) throw this.failure;
    this.loading ??= this.loadOnce().finally(() => {
      this.loading = undefined;
    });
    await this.loading;
  }

  private async loadOnce(): Promise<void> {
    try {
      this.keys = jose().createLocalJWKSet((await this.source.load()) as JSONWebKeySet);
      this.loadedAt = this.clock.now();
      this.failure = undefined;
    } catch (error) {
      const { message } = error as Error;
      if (message !== (this.failure as Error | undefined)?.message)
        this.logger.warn(`${this.source.name}: the keys cannot be loaded: ${message}`);
      this.failedAt = this.clock.now();
      this.failure = error;
      throw error;
    }
  }

  /** Also false after the clock was set back; the keys are then loaded again. */
  private isWithin(since: number, milliseconds: number): boolean {
    const age = this.clock.now() - since;
    return age >= 0 && age < milliseconds;
  }
}
