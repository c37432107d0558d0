import { Delete, Param, UseGuards } from '@nestjs/common';
import { Audit, party } from '../audit/audit.js';
import { CUSTOMER_PATH } from '../identity/customer-records.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { ManagementController } from '../platform/http/surfaces.js';
import { UUID } from '../platform/uuid.js';
import { CustomerFamilies } from './customer-families.js';
import { RefreshTokens } from './refresh-tokens.js';

/** Lets the operator end one refresh family of a customer (protocol §9.2). */
@ManagementController('admin/identities')
@UseGuards(OperatorGuard)
export class RefreshFamilyController {
  constructor(
    private readonly families: CustomerFamilies,
    private readonly tokens: RefreshTokens,
    private readonly audit: Audit,
  ) {}

  @Delete(':entity_id/refresh-families/:family_id')
  @ApiRoute({
    summary: 'End a refresh family of a customer, with its tokens',
    description: 'Ends one refresh token of a customer, its access tokens and their descendants.',
    pathParameters: {
      ...CUSTOMER_PATH,
      family_id: {
        description: 'The id of the refresh family, from the data of the customer.',
        example: EXAMPLE.familyId,
      },
    },
  })
  async end(@Param('entity_id') entityId: string, @Param('family_id') familyId: string): Promise<object> {
    const families = UUID.test(entityId) ? await this.families.list(entityId) : [];
    if (!families.some(({ id }) => id === familyId)) throw OAuthError.notFound();
    await this.tokens.end({ id: familyId, audience: 'customer-api' });
    this.audit.success('token.revoked', operatorActor(), party('token', familyId));
    return {};
  }
}
