import { Injectable } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import { inactiveToken } from '../access-token/inactive-reason.js';
import { lineageByTransfer } from '../access-token/token-lineage.js';
import { CUSTOMERS_OWN, ownId, type Principal } from '../bearer/principal.js';
import { Identities } from '../identity/identities.js';
import { OAuthError, REQUEST_ERRORS } from '../oauth/oauth-error.js';
import { Integer, Text } from '../oauth/parameters.js';
import type { CodeProof } from '../one-time-code/code-proof.js';
import { OneTimeCodes, type RedeemedCode, type RedemptionSteps } from '../one-time-code/one-time-codes.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { RateLimits } from '../rate-limit/rate-limits.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import { Registry } from '../registry/registry.js';
import type { TransferBody } from './transfer.body.js';

/** The response of an identity transfer (protocol §4.4). */
export class TransferResponse {
  @Text('The transfer token. Show it to the second device only.', EXAMPLE.transferToken)
  identity_transfer_token!: string;

  @Integer('The seconds until the transfer token expires.', 3_600)
  expires_in!: number;
}

/** The result of redeeming a transfer token. */
type TransferredIdentity = Pick<RedeemedCode, 'organizationId' | 'groupId' | 'attempt' | 'lineage'> & {
  entityId: string;
};

/** Lets another device get an access token of the same customer (protocol §4.4 and §4.5). */
@Injectable()
export class Transfers {
  constructor(
    private readonly registry: Registry,
    private readonly identities: Identities,
    private readonly codes: OneTimeCodes,
    private readonly configuration: Configuration,
    private readonly limits: RateLimits,
    private readonly denylist: Denylist,
  ) {}

  /**
   * @throws OAuthError `invalid_request`; `invalid_grant` if the chain of transfers is too long;
   * `temporarily_unavailable` if a rate limit is exceeded
   */
  async create(principal: Principal, body: TransferBody, origin: string | undefined): Promise<TransferResponse> {
    const { organizationId } = principal;
    if (body.code_challenge_method !== undefined && body.code_challenge === undefined) {
      throw REQUEST_ERRORS.challengeRequired();
    }
    const client = this.registry.clientCalling(body.client_id, origin);
    if (!this.registry.organization(organizationId)?.admits(client)) throw REQUEST_ERRORS.clientOutsideOrganization();
    const { clientId } = client;
    this.limits.take('tokens', clientId);
    const { subject, generation } = await this.subjectOf(principal, body.customer_id);
    // After the lookup, so that made-up customer ids take no counters in memory.
    this.limits.take('transfers', subject);
    const lineage = lineageByTransfer(principal.claims, generation);
    const codeFields = { clientId, subject, organizationId, codeChallenge: body.code_challenge };
    const content = { ...codeFields, bearer: principal.claims, lineage };
    const ttlSeconds = this.configuration.TRANSFER_TOKEN_TTL;
    return { identity_transfer_token: await this.codes.issue('transfer', content, ttlSeconds), expires_in: ttlSeconds };
  }

  /**
   * Redeems a transfer token. The new token carries the customer's generation of the time of the transfer. So it has
   * ended already if the customer was erased since.
   *
   * @param steps what the redemption gives in addition to the token
   * @throws OAuthError `invalid_request` if the customer's organization does not admit the client, so that the transfer
   * token stays usable; `invalid_grant` if the transfer token is unknown, expired or redeemed, if client or verifier do
   * not match, or if the bearer that created it has ended
   */
  async redeem(
    client: ClientApplication,
    { code, codeVerifier }: Pick<CodeProof, 'codeVerifier'> & { code: string },
    steps?: RedemptionSteps,
  ): Promise<TransferredIdentity> {
    const proof = { clientId: client.clientId, codeVerifier };
    const redeemed = await this.codes.redeem('transfer', code, proof, {
      ...steps,
      prepare: async (redeemable) => {
        this.registry.organizationAdmitting(client, redeemable.organizationId);
        await steps?.prepare?.(redeemable);
      },
    });
    const { subject: entityId, organizationId, groupId, attempt, lineage } = redeemed;
    return { entityId, organizationId, groupId, attempt, lineage };
  }

  /**
   * The customer to transfer. An agent's token does not carry the customer's generation, so it is read for an agent.
   */
  private async subjectOf(
    principal: Principal,
    customerId: string | undefined,
  ): Promise<{ subject: string; generation?: number }> {
    if (principal.kind === 'customer') return { subject: ownId(principal, customerId) };
    if (customerId === undefined) throw REQUEST_ERRORS.customerRequired();
    const customer = await this.identities.find(customerId, principal.organizationId);
    if (!customer) throw REQUEST_ERRORS.customerUnknown();
    // after the generation was read: an agent whose token ended before the sessions of the customer transfers nothing
    if (await this.denylist.hasEnded(principal.claims)) throw inactiveToken('revoked');
    return { subject: customerId, generation: customer.generation };
  }
}

/**
 * Asserts that the bearer has the kind `bearer_type`, and that an agent has the scope `customers:own` (protocol §4.4).
 *
 * @throws OAuthError `invalid_token`, `insufficient_scope`
 */
export function assertMayTransfer(principal: Principal, bearerType: TransferBody['bearer_type']): void {
  if (principal.kind !== bearerType) throw inactiveToken('other_audience');
  if (principal.kind === 'agent' && !principal.scopes.includes(CUSTOMERS_OWN))
    throw OAuthError.insufficientScope(CUSTOMERS_OWN);
}
