import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import type { TokenLineage } from '../access-token/token-lineage.js';
import type { Customer } from '../identity/customer.js';
import { Identities } from '../identity/identities.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { CustomerFamilies } from '../refresh-token/customer-families.js';
import { FamilyDeletion } from '../refresh-token/family-deletion.js';
import { RefreshAudit } from '../refresh-token/refresh-audit.js';
import type { RefreshContent } from '../refresh-token/refresh-content.js';
import { RefreshTokens } from '../refresh-token/refresh-tokens.js';
import { admittingOrganization } from '../registry/admitting-organization.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import { Registry } from '../registry/registry.js';
import { NewFamily } from './new-family.js';

/** The grant by which a client uses a customer's refresh tokens. */
export const REFRESH_TOKEN_GRANT = 'refresh_token';

/** A customer whose refresh token was used. */
interface RefreshedCustomer extends Omit<Customer, 'generation'> {
  lineage: TokenLineage;
  /** The `jti` of the new token. It begins with the id of the family, and ending it leaves the family valid. */
  attempt: string;
  refreshToken: string;
}

/** Refresh tokens of customers (protocol §4.8). */
@Injectable()
export class CustomerRefreshTokens {
  constructor(
    private readonly tokens: RefreshTokens,
    private readonly families: CustomerFamilies,
    private readonly deletion: FamilyDeletion,
    private readonly denylist: Denylist,
    private readonly clock: Clock,
    private readonly audit: RefreshAudit,
    private readonly identities: Identities,
    private readonly registry: Registry,
  ) {}

  /** The refresh family that the redemption of a transfer token gives. */
  newFamily(): NewFamily {
    const { tokens, families, deletion, denylist, clock, audit } = this;
    return new NewFamily({ tokens, families, deletion, denylist, clock, audit });
  }

  /**
   * Replaces a refresh token by its successor (protocol §3.9). Clients do not authenticate at the customers' token
   * endpoint, so a retry must come from the network of the first use.
   *
   * @throws OAuthError `invalid_grant`; `invalid_request` if the organization no longer admits the client
   */
  async refresh(refreshToken: string, client: ClientApplication): Promise<RefreshedCustomer> {
    const { clientId } = client;
    const refreshing = { clientId, isAuthenticated: false, ownerKind: 'customer' } as const;
    const decide = (granted: RefreshContent) => this.currentCustomer(granted, client);
    const { access, family, refreshToken: successor } = await this.tokens.rotate(refreshToken, refreshing, decide);
    return { ...access, attempt: `${family}.${randomUUID()}`, refreshToken: successor };
  }

  /** The token carries the generation of the family, so that a token of a request under way ends too. */
  private async currentCustomer({ owner, organizationId, lineage }: RefreshContent, client: ClientApplication) {
    admittingOrganization(this.registry, organizationId, client);
    const customer = await this.identities.find(owner.id, organizationId);
    if (!customer) throw OAuthError.invalidGrant('refresh token: its customer was erased');
    return { entityId: owner.id, organizationId, groupId: customer.groupId, lineage };
  }
}
