import { Injectable } from '@nestjs/common';
import { IsInt, IsString } from 'class-validator';
import type { Principal } from '../agent-auth/principal.js';
import { Identities } from '../identity/identities.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { type CodeProof, OneTimeCodes } from '../one-time-code/one-time-codes.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Registry } from '../registry/registry.js';
import type { TransferBody } from './transfer.body.js';

/** The answer of specification 2.3. */
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
}

/** What an agent needs to hand a customer on, since whoever gets it acts as the customer. */
const SCOPE = 'customers:own';

/** Moves a customer to another device (specification 4.4 and 4.5). */
@Injectable()
export class Transfers {
  constructor(
    private readonly registry: Registry,
    private readonly identities: Identities,
    private readonly codes: OneTimeCodes,
    private readonly configuration: Configuration,
  ) {}

  /** @throws OAuthError `invalid_request` */
  async create(principal: Principal, body: TransferBody, origin: string | undefined): Promise<TransferResponse> {
    const { organizationId } = principal;
    if (body.code_challenge_method !== undefined && body.code_challenge === undefined) {
      throw OAuthError.invalidRequest('code_challenge: required with code_challenge_method');
    }
    const client = this.registry.clientCalling(body.client_id, origin);
    if (!client.usableIn(organizationId)) throw OAuthError.invalidRequest('client_id: not usable in this organization');
    const { clientId } = client;
    const subject = await this.subjectOf(principal, body.customer_id);
    const content = {
      clientId,
      subject,
      organizationId,
      codeChallenge: body.code_challenge,
      madeWith: principal.token,
    };
    const ttl = this.configuration.TRANSFER_TOKEN_TTL;
    return { identity_transfer_token: await this.codes.issue('transfer', content, ttl), expires_in: ttl };
  }

  /**
   * Redeems a transfer token. The customer is looked for after the redemption, so that one erased meanwhile is missed.
   *
   * @throws OAuthError `invalid_grant`
   */
  async redeem(code: string, proof: CodeProof): Promise<TransferredIdentity> {
    const { subject: entityId, organizationId, attempt } = await this.codes.redeem('transfer', code, proof);
    if (!(await this.identities.exists(entityId, organizationId))) {
      throw OAuthError.invalidGrant('code: its customer was erased');
    }
    return { entityId, organizationId, attempt };
  }

  private async subjectOf(principal: Principal, customerId: string | undefined): Promise<string> {
    if (principal.kind === 'customer') {
      if (customerId === undefined || customerId === principal.entityId) return principal.entityId;
      throw OAuthError.invalidRequest("customer_id: must be the bearer's own");
    }
    if (customerId === undefined) throw OAuthError.invalidRequest('customer_id: required');
    if (!(await this.identities.exists(customerId, principal.organizationId))) {
      throw OAuthError.invalidRequest('customer_id: unknown');
    }
    return customerId;
  }
}

/**
 * The bearer must be of the kind that the caller says, and an agent's must reach that far (specification 5.5).
 *
 * @throws OAuthError `invalid_token`, `insufficient_scope`
 */
export function checkBearer(principal: Principal, bearerType: TransferBody['bearer_type']): void {
  if (principal.kind !== bearerType) throw OAuthError.invalidToken('not of the kind that bearer_type says');
  if (principal.kind === 'agent' && !principal.scopes.includes(SCOPE)) throw OAuthError.insufficientScope(SCOPE);
}
