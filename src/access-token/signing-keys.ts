import { hkdfSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { FileErrors } from '../platform/files/file-errors.js';
import { WatchedFile } from '../platform/files/watched-file.js';
import { MetricsRegistry } from '../platform/metrics/metrics-registry.js';
import { generatedKeys } from './generated-keys.js';
import { measureKeys } from './key-metrics.js';
import { type PublicJwk, readKeySet, type SigningKey } from './key-set.js';

/**
 * The keys that sign and verify access tokens, all of one file that all processes share (protocol §3.16). A change
 * of the file is in force within seconds; one that leaves no key to sign with is not. A key that is taken out of the file
 * ends its tokens at once; one that is to go in peace is given an `exp` (docs/decisions/0013-key-rotation.md).
 */
@Injectable()
export class SigningKeys implements OnApplicationBootstrap, OnApplicationShutdown {
  /** Newest first. */
  private keys: SigningKey[] = [];
  private byHeader = new Map<string, SigningKey>();
  /** When each key that came by a change of the file may sign at the earliest: verifiers must know it by then. */
  private readonly earliest = new Map<string, number>();
  private readonly file: WatchedFile;

  constructor(
    configuration: Configuration,
    private readonly clock: Clock,
    private readonly audit: Audit,
    faults: FileErrors,
    metrics: MetricsRegistry,
  ) {
    const path = configuration.SIGNING_KEYS_FILE ?? generatedKeys(configuration.DATA_DIR, clock);
    const text = read(path);
    this.use(text);
    this.file = new WatchedFile(
      'SIGNING_KEYS_FILE',
      () => readFile(path, 'utf8'),
      text,
      (changed) => this.change(changed),
      faults,
    );
    measureKeys(() => this.keys, clock, metrics);
  }

  onApplicationBootstrap(): void {
    this.file.start();
  }

  onApplicationShutdown(): void {
    this.file.stop();
  }

  /** The newest key that may sign now. */
  current(): SigningKey {
    return signingKeyOf(this.keys, this.clock.seconds());
  }

  /**
   * The key that a token's first segment names. Only the very text that our own tokens begin with names one, so that no
   * other `alg`, `typ`, `jwk`, `jku` or `crit` is ever read, let alone believed (RFC 8725 §3).
   */
  keyByHeader(header: string): SigningKey | undefined {
    const key = this.byHeader.get(header);
    return key && this.clock.seconds() < key.exp ? key : undefined;
  }

  /**
   * One secret of 32 bytes, in base64url, from each key for one purpose: first that of the key that signs now, which every
   * process has (HKDF, RFC 5869).
   */
  derivedSecrets(purpose: string): string[] {
    const current = this.current();
    return [current, ...this.keys.filter((key) => key !== current)].map(({ privateKey }) => {
      const { d = '' } = privateKey.export({ format: 'jwk' });
      return Buffer.from(hkdfSync('sha256', Buffer.from(d, 'base64url'), '', purpose, 32)).toString('base64url');
    });
  }

  /** The public half of every key that signs, will sign, or has signed tokens that may still live. */
  publicKeySet(): { keys: PublicJwk[] } {
    const now = this.clock.seconds();
    return { keys: this.keys.filter(({ exp }) => now < exp).map(({ publicJwk }) => publicJwk) };
  }

  /** @throws Error in which case the keys stay as they were */
  private use(text: string): void {
    const read = keysOf(text);
    signingKeyOf(read.sort(byNewest), this.clock.seconds());
    const published = read.map((key) => ({ ...key, nbf: Math.max(key.nbf, this.earliest.get(kidOf(key)) ?? 0) }));
    // where no other key may sign, a new one must at once
    const keys = published.some((key) => maySign(key, this.clock.seconds())) ? published.sort(byNewest) : read;
    this.keys = keys;
    this.byHeader = new Map(keys.map((key) => [key.header, key]));
  }

  private change(text: string): void {
    const before = this.keys.map(kidOf);
    const signing = this.keys.find((key) => maySign(key, this.clock.seconds()));
    if (signing) this.earliest.delete(kidOf(signing));
    const published = this.clock.seconds() + PUBLISH_BEFORE_USE_SECONDS;
    for (const kid of keysOf(text).map(kidOf)) if (!before.includes(kid)) this.earliest.set(kid, published);
    this.use(text);
    const now = this.keys.map(kidOf);
    const added = now.filter((kid) => !before.includes(kid));
    const removed = before.filter((kid) => !now.includes(kid));
    const details = { added, removed };
    this.audit.record({ event: 'keys.changed', outcome: 'success', actor: { kind: 'service' }, details });
  }
}

/** Seconds for which a new key is published before it signs: as long as the JWKS may be kept, and a look at the file. */
const PUBLISH_BEFORE_USE_SECONDS = 360;

const byNewest = (one: SigningKey, other: SigningKey) => other.nbf - one.nbf;

const maySign = ({ nbf, exp }: SigningKey, now: number) => nbf <= now && now < exp;

const kidOf = ({ publicJwk }: SigningKey) => publicJwk.kid;

function signingKeyOf(keys: SigningKey[], now: number): SigningKey {
  const key = keys.find((each) => maySign(each, now));
  if (!key) throw new Error('SIGNING_KEYS_FILE: no key may sign now');
  return key;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw new Error('SIGNING_KEYS_FILE: the file cannot be read');
  }
}

function keysOf(text: string): SigningKey[] {
  try {
    return readKeySet(text);
  } catch (error) {
    throw new Error(`SIGNING_KEYS_FILE: ${(error as Error).message}`);
  }
}
