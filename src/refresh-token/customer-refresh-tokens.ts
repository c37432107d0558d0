import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Audit } from '../audit/audit.js';
import { CustomerDevices } from '../identity/customer-devices.js';
import { Identities } from '../identity/identities.js';
import { OAuthError } from '../oauth/oauth-error.js';
import type { RedeemedCode } from '../one-time-code/one-time-codes.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import { Registry } from '../registry/registry.js';
import { type RefreshContent, refreshEvent } from './family-statements.js';
import { RefreshTokens } from './refresh-tokens.js';

/** The grant by which a client uses a customer's refresh tokens. */
export const REFRESH_TOKEN_GRANT = 'refresh_token';

type RedeemedTransfer = Pick<RedeemedCode, 'subject' | 'clientId' | 'organizationId' | 'lineage' | 'attempt'>;

/** Refresh tokens of customers (protocol §4.8). */
@Injectable()
export class CustomerRefreshTokens {
  constructor(
    private readonly tokens: RefreshTokens,
    private readonly audit: Audit,
    private readonly identities: Identities,
    private readonly registry: Registry,
    private readonly devices: CustomerDevices,
  ) {}

  /**
   * Creates the refresh family of a transferred customer in the transaction of the redemption. Its id is that of the
   * redemption, so that a replay of the code ends the family.
   *
   * @returns the first refresh token
   */
  async beginIn(manager: EntityManager, code: RedeemedCode): Promise<string> {
    await this.devices.makeRoom(manager, 'refresh family', code.subject, code.lineage);
    return this.tokens.beginIn(manager, code.attempt, contentOf(code));
  }

  auditIssued(code: RedeemedTransfer): void {
    this.audit.record(refreshEvent('issued', code.attempt, contentOf(code)));
  }

  /**
   * Replaces a refresh token by its successor (protocol §3.9). Clients do not authenticate at the customers' token
   * endpoint, so a late retry must come from the network of the first use.
   *
   * @returns the customer. `attempt` is the `jti` of the new token. It begins with the id of the family, and ending it
   *   leaves the family valid
   * @throws OAuthError `invalid_grant`; `invalid_request` if the organization no longer admits the client
   */
  async refresh(refreshToken: string, client: ClientApplication) {
    const { clientId } = client;
    const refreshing = { clientId, isAuthenticated: false, audience: 'customer-api' } as const;
    // The token carries the generation of the family, so that a token of a request under way ends too.
    const decide = async ({ owner: { id: entityId }, organizationId, lineage }: RefreshContent) => {
      this.registry.organizationAdmitting(client, organizationId);
      const customer = await this.identities.find(entityId, organizationId);
      if (!customer) throw OAuthError.invalidGrant('refresh token: its customer was erased');
      return { entityId, organizationId, groupId: customer.groupId, lineage };
    };
    const { access, family, refreshToken: successor } = await this.tokens.rotate(refreshToken, refreshing, decide);
    return { ...access, attempt: `${family}.${randomUUID()}`, refreshToken: successor };
  }
}

function contentOf({ subject, clientId, organizationId, lineage }: RedeemedTransfer): RefreshContent {
  return { owner: { kind: 'customer', id: subject }, clientId, organizationId, scope: '', lineage };
}
