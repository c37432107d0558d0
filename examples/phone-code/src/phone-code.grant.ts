import {
  CustomersByKey,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
  OneTimeCodes,
} from '@customer-authorization/service/grant';
import { IsString, Matches } from 'class-validator';
import { IsPhone } from './phone.js';

export class PhoneCodeBody extends GrantBody {
  @IsString() override organization_id!: string;
  @IsPhone() phone!: string;
  @Matches(/^\d{6}$/, { message: 'must be six digits' }) code!: string;
}

/** The code of a message proves that the caller reads the messages to its phone, which leads to the same customer. */
@GrantType('phone_code', {
  body: PhoneCodeBody,
  lifetime: 600,
  guesses: 5,
  attempts: { per: ['network'], limit: '100/600' }, // against one guess at each of many codes
})
export class PhoneCodeGrant implements Grant<PhoneCodeBody> {
  constructor(
    private readonly codes: OneTimeCodes,
    private readonly customers: CustomersByKey,
  ) {}

  async grant(request: GrantRequest<PhoneCodeBody>): Promise<GrantResult> {
    const { phone, code } = request.body;
    await this.codes.redeem(request, code, phone); // before the customer, so that a rejected request creates none
    return this.customers.customerOf(request, 'phone', phone);
  }
}
