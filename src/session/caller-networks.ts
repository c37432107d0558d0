import { Injectable } from '@nestjs/common';
import { SigningKeys } from '../access-token/signing-keys.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { derivedSecret } from '../platform/secret.js';

const PURPOSE = 'network of a caller';

/** Recognizes the network of an earlier caller without storing it. */
@Injectable()
export class CallerNetworks {
  constructor(private readonly keys: SigningKeys) {}

  /**
   * An HMAC of the caller's network, because an IPv4 address could be found from a hash by trying all addresses. After
   * a key rotation, each network counts as another one.
   *
   * @param context only values of one context can be compared
   * @returns `null` outside of a request
   */
  current(context: string): string | null {
    const request = requestContext.current();
    if (!request) return null;
    return derivedSecret(this.keys.derivedSecret(PURPOSE), `${context} ${request.network}`);
  }
}
