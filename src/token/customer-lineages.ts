import { Injectable } from '@nestjs/common';
import type { AccessTokenClaims } from '../access-token/access-tokens.js';
import { Denylist } from '../access-token/denylist.js';
import { lineageByAgent, lineageByBoth, lineageByTransfer, type TokenLineage } from '../access-token/token-lineage.js';
import { Descents } from '../bearer/descents.js';
import type { AgentPrincipal } from '../bearer/principal.js';
import type { Customer } from '../identity/customer.js';
import { Identities } from '../identity/identities.js';
import { OAuthError } from '../oauth/oauth-error.js';
import type { GrantResult } from './grant.js';
import type { TokenRequest } from './token-checks.js';

/** The claims of a token that depend on its customer and on its origin. */
export type CustomerClaims = TokenLineage & Pick<AccessTokenClaims, 'group_id'>;

/**
 * The grants of this service, which read the row of each customer that they return, or a row that names the customer.
 * An extension cannot have a grant with one of these names.
 */
const GRANTS_THAT_READ_THE_CUSTOMER = new Set([
  'agent_token',
  'cookie',
  'identity_token',
  'refresh_token',
  'urn:ietf:params:oauth:grant-type:jwt-bearer',
]);

const ERRORS = {
  erased: () => OAuthError.invalidGrant('the customer was erased'),
  wrongGroup: () =>
    OAuthError.serverError(
      new Error(
        'the grant returned a groupId that is not the group of the customer; return groupId of the Customer, and create ' +
          'the customer in its group: create({ organizationId, groupId }) or createIfAbsent(id, { organizationId, groupId })',
      ),
    ),
  otherGroup: () =>
    OAuthError.serverError(
      new Error(
        'the grant returned a customer of another group than that of the path; find or create it in the group `groupId` ' +
          'of the request',
      ),
    ),
};

/** Determines the tokens that a customer token descends from, the generations with which it ends, and its group. */
@Injectable()
export class CustomerLineages {
  constructor(
    private readonly identities: Identities,
    private readonly descents: Descents,
    private readonly denylist: Denylist,
  ) {}

  /**
   * The row of the customer decides its organization and group.
   *
   * @throws OAuthError `invalid_grant` if the customer was erased in the meantime, or the proof has ended with the
   * token that it descends from; 500 if the organization or the group is not the customer's, or the group not that of
   * the path
   */
  async of(result: GrantResult, { grant, caller: agent, route }: TokenRequest): Promise<CustomerClaims> {
    const { descent } = result;
    const granted = descent === undefined ? result : await this.ofDescendant(result, descent, agent);
    const isRead = descent !== undefined || GRANTS_THAT_READ_THE_CUSTOMER.has(grant.name);
    const { groupId, generation } = await this.currentOf(granted, isRead);
    if (route.group && route.group.groupId !== groupId) throw ERRORS.otherGroup();
    const group = groupId === '' ? {} : { group_id: groupId };
    if (granted.lineage) return { ...granted.lineage, ...group };
    return { ...(agent ? lineageByAgent(agent.claims, generation) : { gen: generation }), ...group };
  }

  /** The customer is read before the check of what has ended, so that no later generation is missed. */
  private async ofDescendant(granted: GrantResult, descent: string, agent?: AgentPrincipal): Promise<GrantResult> {
    const { bearer, organizationId, entityId = granted.entityId, generation } = this.descents.read(descent);
    if (granted.entityId !== entityId || granted.organizationId !== organizationId)
      throw OAuthError.invalidGrant('descent: of another customer or organization');
    const customer = await this.identities.find(entityId, organizationId);
    if (!customer) throw OAuthError.invalidGrant('descent: its customer was erased, or is of another organization');
    const { groupId } = customer;
    if ((granted.groupId ?? groupId) !== groupId) throw ERRORS.wrongGroup();
    const ofAgent =
      bearer.aud === 'customer-api' ? undefined : (generation ?? granted.generation ?? customer.generation);
    const lineage = lineageByTransfer(bearer, ofAgent);
    const { jti, client_id, iat } = bearer;
    if (await this.denylist.hasEnded({ jti, sub: entityId, client_id, iat, aud: 'customer-api', ...lineage }))
      throw OAuthError.invalidGrant('descent: the token of the caller has ended');
    return { ...granted, groupId, lineage: agent ? lineageByBoth(lineage, agent.claims) : lineage };
  }

  private async currentOf(granted: GrantResult, isRead: boolean): Promise<Pick<Customer, 'groupId' | 'generation'>> {
    const { entityId, organizationId, groupId, lineage, generation = lineage?.gen } = granted;
    if (isRead && groupId !== undefined && generation !== undefined) return { groupId, generation };
    const current = await this.identities.findGranted(entityId, organizationId);
    if (!current) throw ERRORS.erased();
    if ((groupId ?? current.groupId) !== current.groupId) throw ERRORS.wrongGroup();
    return { groupId: current.groupId, generation: generation ?? current.generation };
  }
}
