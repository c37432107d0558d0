import { hkdfSync } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { generateKey, type PublicJwk, readKeySet, type SigningKey } from './key-set.js';

/** The keys that sign and verify access tokens, all of one file that all processes share (contract, section 3). */
@Injectable()
export class SigningKeys {
  /** Newest first. */
  private readonly keys: SigningKey[];
  private readonly byHeader: Map<string, SigningKey>;

  constructor(
    configuration: Configuration,
    private readonly clock: Clock,
  ) {
    const path = configuration.SIGNING_KEYS_FILE ?? generatedKeys(configuration.DATA_DIR, clock);
    this.keys = load(path).sort((one, other) => other.nbf - one.nbf);
    this.byHeader = new Map(this.keys.map((key) => [key.header, key]));
    this.current();
  }

  /** The newest key that may sign now. */
  current(): SigningKey {
    const now = this.clock.seconds();
    const key = this.keys.find(({ nbf, exp }) => nbf <= now && now < exp);
    if (!key) throw new Error('SIGNING_KEYS_FILE: no key may sign now');
    return key;
  }

  /**
   * The key that a token's first segment names. Only the very text that our own tokens begin with names one, so that no
   * other `alg`, `typ`, `jwk`, `jku` or `crit` is ever read, let alone believed (RFC 8725 section 3).
   */
  verifying(header: string): SigningKey | undefined {
    const key = this.byHeader.get(header);
    return key && this.clock.seconds() < key.exp ? key : undefined;
  }

  /** One secret of 32 bytes, in base64url, from each key for one purpose, newest key first (HKDF, RFC 5869). */
  derivedSecrets(purpose: string): string[] {
    return this.keys.map(({ privateKey }) => {
      const { d = '' } = privateKey.export({ format: 'jwk' });
      return Buffer.from(hkdfSync('sha256', Buffer.from(d, 'base64url'), '', purpose, 32)).toString('base64url');
    });
  }

  /** The public half of every key that signs, will sign, or has signed tokens that may still live. */
  publicKeySet(): { keys: PublicJwk[] } {
    const now = this.clock.seconds();
    return { keys: this.keys.filter(({ exp }) => now < exp).map(({ publicJwk }) => publicJwk) };
  }
}

function load(path: string): SigningKey[] {
  try {
    return readKeySet(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Error(
      `SIGNING_KEYS_FILE: ${'code' in (error as object) ? 'the file cannot be read' : (error as Error).message}`,
    );
  }
}

/** With the embedded database, a first start makes the key it needs. */
function generatedKeys(folder: string, clock: Clock): string {
  const path = join(folder, 'signing-keys.json');
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // beside it first: a full disk must not leave half a file, nor two first starts two keys
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify({ keys: [generateKey(clock.seconds())] }, undefined, 2)}\n`, { mode: 0o600 });
  try {
    linkSync(draft, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
  }
  unlinkSync(draft);
  new Logger(SigningKeys.name).log(`generated a signing key: ${path}`);
  return path;
}
