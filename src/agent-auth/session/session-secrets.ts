import { createHmac } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { SigningKeys } from '../../access-token/signing-keys.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { equalInConstantTime } from '../../platform/secret.js';

/**
 * The secrets that sign what the page gives a browser: the first signs, all verify. Where SESSION_SECRET is not set they
 * are derived from the signing keys, which every process has and an operator rotates anyway.
 */
@Injectable()
export class SessionSecrets {
  private readonly given: string[] | undefined;

  constructor(
    { SESSION_SECRET }: Configuration,
    private readonly keys: SigningKeys,
  ) {
    this.given = SESSION_SECRET?.split(',');
  }

  get all(): string[] {
    return this.given ?? this.keys.derivedSecrets('agent session');
  }

  /** A signature of a text, for one purpose. */
  sign(purpose: string, text: string): string {
    return hmac(this.all[0] as string, purpose, text);
  }

  isSignature(purpose: string, text: string, signature: string): boolean {
    return this.all.some((secret) => equalInConstantTime(hmac(secret, purpose, text), signature));
  }
}

function hmac(secret: string, purpose: string, text: string): string {
  return createHmac('sha256', secret).update(`${purpose}\n${text}`).digest('base64url');
}
