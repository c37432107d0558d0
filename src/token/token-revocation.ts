import { Injectable } from '@nestjs/common';
import { type AccessTokenClaims, AccessTokens } from '../access-token/access-tokens.js';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import type { Audience } from '../access-token/session-claims.js';
import type { CountedRevocation } from '../feed/revocation-limit.js';
import { operatorActor } from '../http/callers/operator-credentials.js';
import { Audit, party } from '../platform/audit/audit.js';
import { type RequestContext, requestContext } from '../platform/request-context/request-context.js';
import { AgentRefreshTokens } from '../redemption/agent-refresh-tokens.js';
import { CustomerRefreshTokens } from '../redemption/customer-refresh-tokens.js';
import { AgentSessionEndings } from '../session/agent/agent-session-endings.js';
import { SessionEndings } from '../session/session-endings.js';

const record = (facts: Pick<Partial<RequestContext>, 'token' | 'reason'>) => requestContext.set(facts);
const setReason = (reason: InactiveReason) => record({ reason });

interface Revoker {
  /** The calling client; `undefined` means the operator, who may end any token. */
  clientId: string | undefined;
  /** The only audience whose tokens the caller may end; all if omitted. */
  audience?: Audience;
  /** Counts the revocation before it is written; throws if a limit is reached. */
  count?: () => CountedRevocation | undefined;
}

/** Revokes tokens for a client or the operator (RFC 7009). */
@Injectable()
export class TokenRevocation {
  constructor(
    private readonly tokens: AccessTokens,
    private readonly endings: SessionEndings,
    private readonly customerRefreshTokens: CustomerRefreshTokens,
    private readonly agentRefreshTokens: AgentRefreshTokens,
    private readonly agentEndings: AgentSessionEndings,
    private readonly audit: Audit,
  ) {}

  /**
   * Ends an access token, also an expired one, because what was made with it may live longer. Ends a refresh token with
   * its session. An invalid token causes no error (RFC 7009 §2.2), nor does a token of another client, which stays valid.
   */
  async revoke(token: string, revoker: Revoker): Promise<void> {
    const { clientId, audience, count } = revoker;
    const { claims, inactiveReason } = this.tokens.inspect(token);
    record({ token: claims });
    if (!claims) return this.endRefreshToken(token, revoker, inactiveReason as InactiveReason);
    if (inactiveReason && inactiveReason !== 'expired') return setReason(inactiveReason);
    if (clientId !== undefined && claims.client_id !== clientId) return setReason('other_client');
    if (audience !== undefined && claims.aud !== audience) return setReason('other_audience');
    const counted = count?.();
    const entries = await this.end(claims);
    counted?.setEntries(entries ?? 0);
    if (entries !== undefined) this.auditRevocation(claims.jti, clientId);
  }

  /** @returns the number of entries for verifiers; `undefined` if nothing has ended */
  private async end(claims: AccessTokenClaims): Promise<number | undefined> {
    if (claims.aud === 'customer-api') return this.endings.endToken(claims);
    const hasEnded = await this.agentEndings.endTokens({ organizationId: claims.organization_id, claims });
    return hasEnded ? 1 : undefined;
  }

  /** @param accessTokenReason why the text is no access token; it may be a refresh token */
  private async endRefreshToken(
    token: string,
    { clientId, audience, count }: Revoker,
    accessTokenReason: InactiveReason,
  ): Promise<void> {
    const ofCustomer = await this.customerRefreshTokens.sessionOf(token, clientId);
    const ofAgent =
      ofCustomer || audience === 'customer-api' ? undefined : await this.agentRefreshTokens.sessionOf(token, clientId);
    const id = ofCustomer?.id ?? ofAgent?.id;
    if (id === undefined)
      return setReason(accessTokenReason === 'not_an_access_token' ? 'not_stored' : accessTokenReason);
    const counted = count?.();
    let hasEnded: boolean;
    if (ofCustomer) {
      const entries = await this.endings.end(ofCustomer.customer_id, id, 'refresh_token_revoked');
      counted?.setEntries(entries ?? 0);
      hasEnded = entries !== undefined;
    } else hasEnded = await this.agentEndings.end(id, 'refresh_token_revoked');
    if (hasEnded) this.auditRevocation(id, clientId);
  }

  private auditRevocation(jti: string, clientId: string | undefined): void {
    const actor = clientId === undefined ? operatorActor() : party('client', clientId);
    this.audit.success('token.revoked', actor, party('token', jti));
  }
}
