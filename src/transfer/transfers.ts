import { Injectable } from '@nestjs/common';
import { IsInt, IsString } from 'class-validator';
import { lineageByTransfer, type TokenLineage } from '../access-token/token-lineage.js';
import type { Principal } from '../bearer/principal.js';
import { Identities } from '../identity/identities.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { CUSTOMERS_OWN } from '../oauth/scopes.js';
import type { CodeProof } from '../one-time-code/code-proof.js';
import { OneTimeCodes } from '../one-time-code/one-time-codes.js';
import { Configuration } from '../platform/configuration/configuration.js';
import type { LimitName } from '../platform/configuration/rate-limit-rule.js';
import { RateLimits } from '../platform/rate-limit/rate-limits.js';
import { Registry } from '../registry/registry.js';
import type { TransferBody } from './transfer.body.js';

/** The answer of protocol §4.4. */
export class TransferResponse {
  @IsString()
  identity_transfer_token: string;

  /** Seconds. */
  @IsInt()
  expires_in: number;
}

/** The customer that a transfer token stood for. */
export interface TransferredIdentity {
  entityId: string;
  organizationId: string;
  /** The `jti` for the customer's new token. */
  attempt: string;
  lineage: TokenLineage;
}

/** Moves a customer to another device (protocol §4.4 and §4.5). */
@Injectable()
export class Transfers {
  constructor(
    private readonly registry: Registry,
    private readonly identities: Identities,
    private readonly codes: OneTimeCodes,
    private readonly configuration: Configuration,
    private readonly limits: RateLimits,
  ) {}

  /** @throws OAuthError `invalid_request`; `temporarily_unavailable` beyond a limit */
  async create(principal: Principal, body: TransferBody, origin: string | undefined): Promise<TransferResponse> {
    const { organizationId } = principal;
    if (body.code_challenge_method !== undefined && body.code_challenge === undefined) {
      throw OAuthError.invalidRequest('code_challenge: required with code_challenge_method');
    }
    const client = this.registry.clientCalling(body.client_id, origin);
    if (!this.registry.organization(organizationId)?.admits(client))
      throw OAuthError.invalidRequest('client_id: not usable in this organization');
    const { clientId } = client;
    this.limit('tokens', clientId);
    const { subject, generation } = await this.subjectOf(principal, body.customer_id);
    // only for a customer that exists: an agent could fill the memory of the limit with ids that it made up
    this.limit('transfers', subject);
    const lineage = lineageByTransfer(principal.claims, generation);
    const about = { clientId, subject, organizationId, codeChallenge: body.code_challenge };
    const content = { ...about, bearer: principal.claims, lineage };
    const ttl = this.configuration.TRANSFER_TOKEN_TTL;
    return { identity_transfer_token: await this.codes.issue('transfer', content, ttl), expires_in: ttl };
  }

  /**
   * Redeems a transfer token. A customer that is erased meanwhile has a higher generation than the token's lineage.
   *
   * @throws OAuthError `invalid_grant`
   */
  async redeem(code: string, proof: CodeProof): Promise<TransferredIdentity> {
    const { subject: entityId, organizationId, attempt, lineage } = await this.codes.redeem('transfer', code, proof);
    return { entityId, organizationId, attempt, lineage };
  }

  private limit(limit: LimitName, key: string): void {
    const wait = this.limits.take(limit, key);
    if (wait > 0) throw OAuthError.rateLimited(wait, limit);
  }

  /** The customer to transfer; with its generation where the bearer does not carry it. */
  private async subjectOf(
    principal: Principal,
    customerId: string | undefined,
  ): Promise<{ subject: string; generation?: number }> {
    if (principal.kind === 'customer') {
      if (customerId === undefined || customerId === principal.entityId) return { subject: principal.entityId };
      throw OAuthError.invalidRequest("customer_id: must be the bearer's own");
    }
    if (customerId === undefined) throw OAuthError.invalidRequest('customer_id: required');
    const customer = await this.identities.find(customerId, principal.organizationId);
    if (!customer) throw OAuthError.invalidRequest('customer_id: unknown');
    return { subject: customerId, generation: customer.generation };
  }
}

/**
 * The bearer must be of the kind that the caller says, and an agent's must reach that far (protocol §4.4).
 *
 * @throws OAuthError `invalid_token`, `insufficient_scope`
 */
export function checkBearer(principal: Principal, bearerType: TransferBody['bearer_type']): void {
  if (principal.kind !== bearerType) throw OAuthError.invalidToken('not of the kind that bearer_type says');
  if (principal.kind === 'agent' && !principal.scopes.includes(CUSTOMERS_OWN))
    throw OAuthError.insufficientScope(CUSTOMERS_OWN);
}
