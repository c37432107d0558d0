import { hkdfSync, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Gauge } from 'prom-client';
import { Audit, party } from '../platform/audit/audit.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { generatedFile } from '../platform/files/generated-file.js';
import { WatchedFile } from '../platform/files/watched-file.js';
import { MetricsRegistry } from '../platform/metrics.js';
import { exportConfigurationInfo } from './configuration-info.js';
import { type KeyValidity, stateOf } from './key-rotation.js';
import { newKeySet, type PublicJwk, readKeySet, type SigningKey } from './key-set.js';

/**
 * All processes share one file (protocol §3.16), and apply a change within seconds. Removing a key from the file
 * immediately ends its tokens. A key with an `exp` is used until its tokens have expired (decision 0013). A key may
 * expire while the file stays the same, so each use asks `validKeys` or `keyByHeader`, which leave out expired keys.
 */
@Injectable()
export class SigningKeys implements OnApplicationBootstrap, OnApplicationShutdown {
  /** The keys of the file, newest first. Only `validKeys` and the metrics read the list. */
  private keys: SigningKey[] = [];
  private byHeader = new Map<string, SigningKey>();
  /** The earliest time at which a key that a file change added may sign. By then verifiers know the key. */
  private readonly earliestUse = new Map<string, number>();
  /** `undefined` in a command that uses no keys. */
  private readonly file: WatchedFile | undefined;

  constructor(
    configuration: Configuration,
    private readonly clock: Clock,
    private readonly audit: Audit,
    metrics: MetricsRegistry,
  ) {
    if (configuration.unused.includes('SIGNING_KEYS_FILE')) return;
    const path = configuration.SIGNING_KEYS_FILE ?? generatedKeyFile(configuration.DATA_DIR, clock);
    const text = read(path);
    this.load(text);
    const rules = {
      read: () => readFile(path, 'utf8'),
      current: text,
      use: (changed: string) => this.change(changed),
    };
    this.file = new WatchedFile('SIGNING_KEYS_FILE', rules, metrics);
    registerKeyMetrics(() => this.keys, clock, metrics);
    exportConfigurationInfo(configuration, () => this.publicKeySet().keys, metrics);
  }

  onApplicationBootstrap(): void {
    this.file?.start();
  }

  onApplicationShutdown(): void {
    this.file?.stop();
  }

  /** @throws Error if no key may sign */
  current(): SigningKey {
    return signingKeyOf(this.validKeys(), this.clock.seconds());
  }

  /** The whole segment is compared, so no other `alg`, `typ`, `jwk`, `jku` or `crit` is ever read (RFC 8725 §3). */
  keyByHeader(header: string): SigningKey | undefined {
    const key = this.byHeader.get(header);
    return key && isValid(key, this.clock.seconds()) ? key : undefined;
  }

  /** The secret of the key that signs now for a purpose. @throws Error if no key may sign */
  derivedSecret(purpose: string): string {
    return secretOf(this.current(), purpose);
  }

  /**
   * One secret per valid key for a purpose. The key that signs now is first: every process has it.
   *
   * @throws Error if no key may sign
   */
  derivedSecrets(purpose: string): string[] {
    const current = this.current();
    return [current, ...this.validKeys().filter((key) => key !== current)].map((key) => secretOf(key, purpose));
  }

  publicKeySet(): { keys: PublicJwk[] } {
    return { keys: this.validKeys().map(({ publicJwk }) => publicJwk) };
  }

  private validKeys(): SigningKey[] {
    const now = this.clock.seconds();
    return this.keys.filter((key) => isValid(key, now));
  }

  /** @throws Error if the file is invalid; the keys then stay unchanged */
  private load(text: string): void {
    const read = keysOf(text);
    const now = this.clock.seconds();
    signingKeyOf(read.sort(byNewest), now);
    const delayed = read.map((key) => ({ ...key, nbf: Math.max(key.nbf, this.earliestUse.get(kidOf(key)) ?? 0) }));
    const endOfDelays = Math.max(now, ...this.earliestUse.values());
    // If no key may sign until the delays end, the keys sign without a delay.
    const keys = delayed.some((key) => maySign(key, now) && isValid(key, endOfDelays)) ? delayed.sort(byNewest) : read;
    this.keys = keys;
    this.byHeader = new Map(keys.map((key) => [key.header, key]));
  }

  private change(text: string): void {
    const before = this.keys.map(kidOf);
    const signing = this.keys.find((key) => maySign(key, this.clock.seconds()));
    if (signing) this.earliestUse.delete(kidOf(signing));
    const signsFrom = this.clock.seconds() + PUBLISH_BEFORE_USE_SECONDS;
    for (const kid of keysOf(text).map(kidOf)) if (!before.includes(kid)) this.earliestUse.set(kid, signsFrom);
    this.load(text);
    const now = this.keys.map(kidOf);
    const added = now.filter((kid) => !before.includes(kid));
    const removed = before.filter((kid) => !now.includes(kid));
    const details = { added, removed };
    this.audit.record({ event: 'keys.changed', outcome: 'success', actor: party('service'), details });
  }
}

/** 300 s of JWKS caching, and a reserve until all processes read the file. */
const PUBLISH_BEFORE_USE_SECONDS = 360;

const byNewest = (one: SigningKey, other: SigningKey) => other.nbf - one.nbf;

const isValid = ({ exp }: SigningKey, now: number) => now < exp;

const maySign = (key: SigningKey, now: number) => key.nbf <= now && isValid(key, now);

/** The secrets of each key by their purposes, which are few. A derivation costs almost as much as a signature. */
const secrets = new WeakMap<KeyObject, Map<string, string>>();

/** HKDF (RFC 5869). */
function secretOf({ privateKey }: SigningKey, purpose: string): string {
  const ofKey = secrets.get(privateKey) ?? new Map<string, string>();
  secrets.set(privateKey, ofKey);
  let secret = ofKey.get(purpose);
  if (secret === undefined) {
    const { d = '' } = privateKey.export({ format: 'jwk' });
    secret = Buffer.from(hkdfSync('sha256', Buffer.from(d, 'base64url'), '', purpose, 32)).toString('base64url');
    ofKey.set(purpose, secret);
  }
  return secret;
}

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

/** SQLite uses this file by default. The first start generates it. */
function generatedKeyFile(folder: string, clock: Clock): string {
  const content = () => `${JSON.stringify(newKeySet(clock.seconds()), undefined, 2)}\n`;
  return generatedFile(join(folder, 'signing-keys.json'), 'a signing key', content);
}

function registerKeyMetrics(keys: () => KeyValidity[], clock: Clock, metrics: MetricsRegistry): void {
  const registers = [metrics];
  new Gauge({
    name: 'cas_signing_keys',
    help: 'Signing keys by state; a verifying key has signed before and signs no more.',
    labelNames: ['state'],
    registers,
    collect() {
      const states = keys().map((key) => stateOf(key, keys(), clock.seconds()));
      for (const state of ['upcoming', 'signing', 'verifying'] as const)
        this.set({ state }, states.filter((each) => each === state).length);
    },
  });
  new Gauge({
    name: 'cas_signing_key_seconds_left',
    help: 'Seconds until no key of the file may sign; absent if a key has no exp.',
    labelNames: [],
    registers,
    collect() {
      this.remove();
      const last = Math.max(...keys().map(({ exp = Infinity }) => exp));
      if (Number.isFinite(last)) this.set(last - clock.seconds());
    },
  });
}
