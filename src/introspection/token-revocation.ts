import { Injectable } from '@nestjs/common';
import { AccessTokens } from '../access-token/access-tokens.js';
import { Denylist } from '../access-token/denylist.js';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import type { Audience } from '../access-token/token-lineage.js';
import { Audit, party } from '../audit/audit.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { RefreshTokens } from '../refresh-token/refresh-tokens.js';

const setReason = (reason: InactiveReason) => requestContext.set({ reason });

interface Revoker {
  /** The calling client; `undefined` means the operator, who may end any token. */
  clientId: string | undefined;
  /** The only audience whose tokens the caller may end; all if omitted. */
  audience?: Audience;
  /** Counts the revocation before it is written; throws if a limit is reached. */
  count?: () => void;
}

/** Revokes tokens for a client or the operator (RFC 7009). */
@Injectable()
export class TokenRevocation {
  constructor(
    private readonly tokens: AccessTokens,
    private readonly denylist: Denylist,
    private readonly refreshTokens: RefreshTokens,
    private readonly audit: Audit,
  ) {}

  /**
   * Ends an access token alone, also an expired one, because what descends from it may live longer. Ends a refresh
   * token with its family. An invalid token causes no error (RFC 7009 §2.2), nor does a token of another client, which
   * stays valid.
   */
  async revoke(token: string, revoker: Revoker): Promise<void> {
    const { clientId, audience, count } = revoker;
    const { claims, inactiveReason } = this.tokens.inspect(token);
    if (!claims) return this.endFamily(token, revoker, inactiveReason as InactiveReason);
    if (inactiveReason && inactiveReason !== 'expired') return setReason(inactiveReason);
    if (clientId !== undefined && claims.client_id !== clientId) return setReason('other_client');
    if (audience !== undefined && claims.aud !== audience) return setReason('other_audience');
    count?.();
    await this.denylist.revokeToken(claims);
    this.auditRevocation(claims.jti, clientId);
  }

  /** @param accessTokenReason why the text is no access token; it may be a refresh token */
  private async endFamily(token: string, revoker: Revoker, accessTokenReason: InactiveReason): Promise<void> {
    const { clientId, audience, count } = revoker;
    const family = await this.refreshTokens.familyOf(token, clientId);
    if (family === undefined || (audience === 'customer-api' && family.audience !== 'customer-api'))
      return setReason(accessTokenReason === 'not_an_access_token' ? 'not_stored' : accessTokenReason);
    count?.();
    await this.refreshTokens.end(family);
    this.auditRevocation(family.id, clientId);
  }

  private auditRevocation(jti: string, clientId: string | undefined): void {
    const actor = clientId === undefined ? operatorActor() : party('client', clientId);
    this.audit.success('token.revoked', actor, party('token', jti));
  }
}
