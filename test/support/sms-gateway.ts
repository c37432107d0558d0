import { readFileSync } from 'node:fs';
import { Injectable } from '@nestjs/common';
import { OAuthError } from '../../src/public/grant.js';

const GATEWAY_TIMEOUT_MS = 2_000;

/** Sends messages through the gateway of another company. */
@Injectable()
export class SmsGateway {
  private readonly url = requiredVariable('SMS_GATEWAY_URL');
  private readonly key = readFileSync(requiredVariable('SMS_GATEWAY_KEY_FILE'), 'utf8').trim();

  /** @throws OAuthError 503 if the gateway does not accept the message in time */
  async send(phone: string, text: string): Promise<void> {
    try {
      const response = await fetch(this.url, {
        method: 'POST',
        headers: { authorization: `Bearer ${this.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ phone, text }),
        redirect: 'error',
        signal: AbortSignal.timeout(GATEWAY_TIMEOUT_MS),
      });
      await response.body?.cancel(); // an unread body would occupy the connection
      if (!response.ok) throw new Error(`the SMS gateway responded with ${response.status}`);
    } catch (cause) {
      throw OAuthError.unavailable(cause); // the cause is logged, so it must not contain the code or the key
    }
  }
}

function requiredVariable(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name}: required by the grant sms_code`);
  return value;
}
