import { Injectable } from '@nestjs/common';
import type { JWTPayload } from 'jose';
import {
  ASSERTION_ALGORITHMS,
  ForeignJwts,
  InvalidJwt,
  type JwtRules,
  unverifiedIssuer,
} from '../../oauth/foreign-jwts.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { isOfOtherCallers } from '../../platform/configuration/issuers.js';
import { sha256 } from '../../platform/secret.js';
import { isIdText } from '../../platform/validation/text-rules.js';
import { ProofUses } from '../../redemption/proof-uses.js';
import type { AssertionKeys, FederatedIdentity } from '../../registry/assertion-keys.js';

/** `client_assertion_type` (RFC 7523 §2.2). */
export const JWT_ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

const OWN_TYPES = ['', 'jwt', 'client-authentication+jwt'];
const OWN_LIFETIME_SECONDS = 600;
/** Kubernetes writes no `typ`, SPIFFE writes `JWT` or `JOSE`. */
const PLATFORM_TYPES = ['', 'jwt', 'jose'];
const PLATFORM_LIFETIME_SECONDS = 86_400;

type AssertionRules = Omit<JwtRules, 'algorithms' | 'isOnlyAudience'> & { subject: string };

/** Verifies the JWTs by which clients and resource servers authenticate (RFC 7523 §3, protocol §2.7). */
@Injectable()
export class ClientAssertions {
  constructor(
    private readonly jwts: ForeignJwts,
    private readonly uses: ProofUses,
    private readonly configuration: Configuration,
  ) {}

  /**
   * @param id of the entry that the request names
   * @param keys of the entry
   * @throws OAuthError `invalid_client`; 503 while the keys cannot be loaded
   */
  async verify(assertion: string, id: string, keys: AssertionKeys | null): Promise<void> {
    if (!keys) throw OAuthError.invalidClient('no keys registered');
    if (keys.federated) await this.verifyPlatformToken(assertion, keys.federated);
    else await this.verifyOwn(assertion, id, keys);
  }

  /** An own assertion is valid once, because it may be seen on its way to another place. */
  private async verifyOwn(assertion: string, id: string, keys: AssertionKeys): Promise<void> {
    const { jti, exp } = await this.claimsOf(assertion, {
      ...{ keys, issuer: id, subject: id, audience: this.configuration.AUTH_URL, types: OWN_TYPES },
      ...{ requiredClaims: ['exp', 'jti'], maxLifetimeSeconds: OWN_LIFETIME_SECONDS },
    });
    if (!isIdText(jti)) throw invalidAssertion('jti is no text of 1 to 255 characters');
    const hash = sha256(JSON.stringify({ id, jti })); // an object, because the hash of a grant's proof is of a list
    if (!(await this.uses.count(hash, 1, (exp as number) * 1000))) throw invalidAssertion('used before');
  }

  /** The platform gives a service the same token until it expires. */
  private async verifyPlatformToken(token: string, federated: FederatedIdentity): Promise<void> {
    const { issuer, subject, audience = this.configuration.AUTH_URL, ...keys } = federated;
    if (isOfOtherCallers(this.configuration, issuer, audience))
      throw invalidAssertion('its issuer is that of agents or operators');
    await this.claimsOf(token, {
      ...{ keys, issuer, subject, audience, types: PLATFORM_TYPES },
      ...{ requiredClaims: ['exp'], maxLifetimeSeconds: PLATFORM_LIFETIME_SECONDS },
    });
  }

  private async claimsOf(token: string, { subject, ...rules }: AssertionRules): Promise<JWTPayload> {
    // another token must not cause a load of the keys
    if (unverifiedIssuer(token) !== rules.issuer) throw invalidAssertion('iss is another one');
    const claims = await this.jwts
      .verify(token, { ...rules, algorithms: ASSERTION_ALGORITHMS, isOnlyAudience: true })
      .catch((error) => {
        throw error instanceof InvalidJwt ? invalidAssertion(error.message) : error;
      });
    if (claims.sub !== subject) throw invalidAssertion('sub is another one');
    return claims;
  }
}

function invalidAssertion(reason: string): OAuthError {
  return OAuthError.invalidClient(`client assertion: ${reason}`);
}
