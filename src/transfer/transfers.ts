import { Injectable } from '@nestjs/common';
import { inactiveToken } from '../access-token/inactive-reason.js';
import {
  type AgentPrincipal,
  CUSTOMERS_OWN,
  type CustomerPrincipal,
  ownId,
  type Principal,
} from '../http/callers/principal.js';
import { CustomerService } from '../identity/customer.service.js';
import { Limits } from '../oauth/limits.js';
import { OAuthError, REQUEST_ERRORS } from '../oauth/oauth-error.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiInteger, ApiString } from '../platform/validation/validation.js';
import { TransferCodes } from '../redemption/transfer-codes.js';
import { Registry } from '../registry/registry.js';
import { Sessions } from '../session/sessions.js';
import type { TransferBody } from './transfer.body.js';

/** The response of an identity transfer (protocol §4.4). */
export class TransferResponse {
  @ApiString('The transfer token. Show it to the second device only.', EXAMPLE.transferToken)
  identity_transfer_token!: string;

  @ApiInteger('The seconds until the transfer token expires.', 3_600)
  expires_in!: number;
}

/** The client that may redeem a transfer token, and its challenge. */
interface CodeContent {
  clientId: string;
  codeChallenge: string | undefined;
}

/** Creates transfer tokens, with which another device gets an access token of the same customer (protocol §4.4). */
@Injectable()
export class Transfers {
  constructor(
    private readonly registry: Registry,
    private readonly customerService: CustomerService,
    private readonly sessions: Sessions,
    private readonly codes: TransferCodes,
    private readonly configuration: Configuration,
    private readonly limits: Limits,
  ) {}

  /**
   * @throws OAuthError `invalid_request`; `invalid_grant` if the chain of transfers is too long;
   * `temporarily_unavailable` if a rate limit is exceeded, or the customer has too many transfer tokens
   */
  async create(principal: Principal, body: TransferBody, origin: string | undefined): Promise<TransferResponse> {
    const { organizationId } = principal;
    if (body.code_challenge_method !== undefined && body.code_challenge === undefined) {
      throw REQUEST_ERRORS.challengeRequired();
    }
    const client = this.registry.requireClient(body.client_id, origin);
    if (!this.registry.organization(organizationId)?.admits(client)) throw REQUEST_ERRORS.clientOutsideOrganization();
    const { clientId } = client;
    this.limits.takeKeys('tokens', clientId);
    const content = { clientId, codeChallenge: body.code_challenge };
    const code =
      principal.kind === 'customer'
        ? await this.ofCustomer(principal, ownId(principal, body.customer_id), content)
        : await this.ofAgent(principal, body.customer_id, content);
    return { identity_transfer_token: code, expires_in: this.configuration.TRANSFER_TOKEN_TTL };
  }

  private async ofCustomer(principal: CustomerPrincipal, entityId: string, content: CodeContent): Promise<string> {
    this.limits.takeKeys('transfers', entityId);
    const { claims, organizationId } = principal;
    const code = await this.sessions.beginForCustomer(claims, (manager, all, origin) =>
      this.codes.issueIn(manager, all, origin, content),
    );
    this.codes.auditIssued({ entityId, organizationId, clientId: content.clientId });
    return code;
  }

  private async ofAgent(agent: AgentPrincipal, customerId: string | undefined, content: CodeContent): Promise<string> {
    if (customerId === undefined) throw OAuthError.invalidRequest('customer_id: required');
    const { organizationId } = agent;
    if (!(await this.customerService.find(customerId, organizationId))) throw REQUEST_ERRORS.customerUnknown();
    // After the lookup, so that made-up customer ids take no counters in memory.
    this.limits.takeKeys('transfers', customerId);
    const code = await this.sessions.beginForAgent(agent, { entityId: customerId }, (manager, all, origin) =>
      this.codes.issueIn(manager, all, origin, content),
    );
    if (code === undefined) throw REQUEST_ERRORS.customerUnknown();
    this.codes.auditIssued({ entityId: customerId, organizationId, clientId: content.clientId });
    return code;
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
