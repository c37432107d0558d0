import {
  CustomersByKey,
  defineExtension,
  type Grant,
  GrantBody,
  type GrantRequest,
  GrantType,
  JwtIssuer,
  JwtProofs,
  OAuthError,
  UseCounter,
} from '@customer-authorization/service/grant';
import { IsString, MaxLength } from 'class-validator';

const GRANT_TYPE = 'boarding_pass';

class BoardingPassBody extends GrantBody {
  @IsString() override organization_id!: string;
  @MaxLength(4_096) boarding_pass!: string;
}

/** A JWT of the organization's issuer gets at most three tokens. The same `sub` leads to the same customer. */
@GrantType(GRANT_TYPE, { body: BoardingPassBody, settings: JwtIssuer, uses: 3, lifetime: 30 * 86_400 })
export class BoardingPassGrant implements Grant<BoardingPassBody> {
  constructor(
    private readonly proofs: JwtProofs,
    private readonly uses: UseCounter,
    private readonly customers: CustomersByKey,
  ) {}

  async grant(request: GrantRequest<BoardingPassBody>) {
    const issuer = request.organization.grants[GRANT_TYPE] as JwtIssuer | undefined;
    if (!issuer) throw OAuthError.unauthorizedClient('organization_id: has no issuer for this grant');
    const { jti, sub, expiresAt } = await this.proofs.verify(request.body.boarding_pass, issuer);
    await this.uses.count(request, jti, expiresAt);
    return this.customers.customerOf(request, 'boarding_pass', sub);
  }
}

export default defineExtension({ grants: [BoardingPassGrant], customerKeyFile: 'BOARDING_PASS_CUSTOMER_KEY_FILE' });
