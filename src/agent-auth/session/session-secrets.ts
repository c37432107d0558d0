import { createHmac } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { SigningKeys } from '../../access-token/signing-keys.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { equalInConstantTime } from '../../platform/secret.js';

/**
 * The secrets for the cookies and CSRF tokens of the page: the first secret signs, all secrets verify. Without
 * SESSION_SECRET they are derived from the signing keys, which all processes share and operators already rotate.
 */
@Injectable()
export class SessionSecrets {
  private readonly configured: string[] | undefined;

  constructor(
    { SESSION_SECRET }: Configuration,
    private readonly keys: SigningKeys,
  ) {
    this.configured = SESSION_SECRET?.split(',');
  }

  get all(): string[] {
    return this.configured ?? this.keys.derivedSecrets('agent session');
  }

  /** Signs a text for one purpose, so that a signature for one purpose is not valid for another. */
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
