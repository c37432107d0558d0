import { Injectable } from '@nestjs/common';
import { inactiveToken } from '../access-token/inactive-reason.js';
import { SigningKeys } from '../access-token/signing-keys.js';
import type { RevocableClaims } from '../access-token/token-claims.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { derivedSecret, equalInConstantTime } from '../platform/secret.js';
import type { DescentCustomer, NamedCaller } from './principal.js';

/** What a grant has stored of the caller from whose token its proof descends. */
export interface Descent {
  bearer: RevocableClaims & { exp: number };
  organizationId: string;
  /** The only customer that the proof may lead to. Absent: every customer of the organization of the agent. */
  entityId?: string | undefined;
  /** The generation of the customer when the proof was created. Absent without `entityId`. */
  generation?: number | undefined;
}

interface StoredDescent extends Descent {
  /** Seconds since 1970. */
  at: number;
}

/** The size of the column that a grant stores the text in (protocol §10.7). */
const MAX_CHARACTERS = 2_000;
/** The ending of the token of the caller is stored at least this long (protocol §3.14). */
const MAX_AGE_SECONDS = 86_400;
const PURPOSE = 'descent of a proof';

/**
 * Writes and reads the texts that tie the proof of a grant to the caller that created it. They are authenticated, so
 * that a grant that returns a text of its caller gives no token (decision 0036).
 */
@Injectable()
export class Descents {
  constructor(
    private readonly keys: SigningKeys,
    private readonly clock: Clock,
  ) {}

  /** @throws OAuthError `invalid_token` if a trusted issuer's token has longer claims than a row can store */
  textOf(caller: NamedCaller, customer?: DescentCustomer): string {
    const { kind, organizationId } = caller;
    const { jti, sub, client_id, iat, exp, aud, gen, iss, sid, ep, act }: Descent['bearer'] = caller.claims;
    const issuer = aud === undefined ? iss : undefined;
    const bearer = { jti, sub, client_id, iat, exp, aud, gen, iss: issuer, sid, ep, act } as Descent['bearer'];
    const { entityId, generation } = kind === 'customer' ? { entityId: sub, generation: gen } : (customer ?? {});
    const stored: StoredDescent = { bearer, organizationId, entityId, generation, at: this.clock.seconds() };
    const content = JSON.stringify(stored); // leaves out what is undefined
    const text = `${derivedSecret(this.keys.derivedSecret(PURPOSE), content)}.${content}`;
    if (text.length > MAX_CHARACTERS) throw inactiveToken('rejected_claim');
    return text;
  }

  /** @throws OAuthError `invalid_grant` if this service did not write the text, or if the text is too old */
  read(text: string): Descent {
    const end = text.indexOf('.');
    const [code, content] = [text.slice(0, end), text.slice(end + 1)];
    if (!this.keys.derivedSecrets(PURPOSE).some((secret) => equalInConstantTime(derivedSecret(secret, content), code)))
      throw OAuthError.invalidGrant('descent: not a text of `descent()` that is stored unchanged');
    const { at, ...descent }: StoredDescent = JSON.parse(content);
    if (this.clock.seconds() - at > MAX_AGE_SECONDS) throw OAuthError.invalidGrant('descent: too old');
    return descent;
  }
}
