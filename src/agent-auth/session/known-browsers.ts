import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { SigningKeys } from '../../access-token/signing-keys.js';
import { Clock } from '../../platform/clock.js';
import { derivedSecret, equalInConstantTime } from '../../platform/secret.js';
import { PageCookies } from './page-cookies.js';

const COOKIE_NAME = 'agent_device';
/** 30 days. */
const LIFETIME_SECONDS = 2_592_000;

/**
 * The account that signed in last with a browser. Its cookie has a time and an HMAC of it and the email: a hash of an
 * email can be found by hashing an address book.
 */
@Injectable()
export class KnownBrowsers {
  constructor(
    private readonly cookies: PageCookies,
    private readonly keys: SigningKeys,
    private readonly clock: Clock,
  ) {}

  isKnown(request: Request, email: string): boolean {
    const [expiresAt = '', signature = ''] = this.cookies.read(request, COOKIE_NAME)?.split('.') ?? [];
    const signatures = this.signaturesOf(email, expiresAt);
    return signatures.some((each) => equalInConstantTime(each, signature)) && this.clock.seconds() < Number(expiresAt);
  }

  remember(request: Request, email: string): void {
    const expiresAt = this.clock.seconds() + LIFETIME_SECONDS;
    const [signature] = this.signaturesOf(email, String(expiresAt));
    this.cookies.write(request, COOKIE_NAME, `${expiresAt}.${signature}`, LIFETIME_SECONDS);
  }

  /** One per valid signing key; that of the key that signs now is first. */
  private signaturesOf(email: string, expiresAt: string): string[] {
    return this.keys.derivedSecrets('known browser').map((secret) => derivedSecret(secret, `${expiresAt}\n${email}`));
  }
}
