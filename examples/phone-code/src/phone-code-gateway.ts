import { readFileSync } from 'node:fs';
import { OAuthError } from '@customer-authorization/service/grant';
import { Injectable } from '@nestjs/common';

const GATEWAY_TIMEOUT_MS = 2_000;

/** Sends messages through the gateway of another company. Replace the request by that of your gateway. */
@Injectable()
export class PhoneCodeGateway {
  private readonly url = variable('PHONE_CODE_GATEWAY_URL');
  private readonly key = readFileSync(variable('PHONE_CODE_GATEWAY_KEY_FILE'), 'utf8').trim();

  /** @throws OAuthError 503 if the gateway does not accept the message in time */
  async send(phone: string, text: string): Promise<void> {
    try {
      const response = await fetch(this.url, {
        method: 'POST',
        headers: { Authorization: `Bearer ${this.key}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ phone, text }),
        redirect: 'error',
        signal: AbortSignal.timeout(GATEWAY_TIMEOUT_MS),
      });
      await response.body?.cancel(); // an unread body would occupy the connection
      if (!response.ok) throw new Error(`the gateway responded with ${response.status}`);
    } catch (cause) {
      throw OAuthError.unavailable(cause); // the cause is logged, so it must not contain the code or the key
    }
  }
}

/** A missing variable stops the start. */
function variable(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name}: required by the grant phone_code`);
  return value;
}
