import { ApiRoute, ClientRequest, Limits, OneTimeCodes, PublicController } from '@customer-authorization/service/grant';
import { HttpCode, Post } from '@nestjs/common';
import { IsInt, IsString } from 'class-validator';
import { IsPhone } from './phone.js';
import { PhoneCodeGrant } from './phone-code.grant.js';
import { PhoneCodeGateway } from './phone-code-gateway.js';

/** As COUNT/SECONDS. The operator can change the limits in RATE_LIMIT. */
export const PHONE_CODE_LIMITS = { phone_code_network: '40/900', phone_code_phone: '3/900' } as const;

class StartBody {
  @IsString() client_id!: string;
  @IsString() organization_id!: string;
  @IsPhone() phone!: string;
}

/** Each phone gets this response, so that no caller learns which phones are known. */
class StartResponse {
  /** The lifetime of the code in seconds. */
  @IsInt() expires_in!: number;
}

@PublicController('v2/customer/phone_code')
export class PhoneCodeController {
  constructor(
    private readonly codes: OneTimeCodes,
    private readonly gateway: PhoneCodeGateway,
    private readonly limits: Limits<typeof PHONE_CODE_LIMITS>,
  ) {}

  /** Sends a code. A repeated request sends another one, which replaces the earlier one. */
  @Post()
  @ApiRoute({
    summary: 'Send a code for the grant phone_code',
    response: StartResponse,
    errors: ['429 temporarily_unavailable'],
  })
  @HttpCode(200)
  async start(
    @ClientRequest(StartBody, { grant: 'phone_code' }) { body, client, organization }: ClientRequest<StartBody>,
  ): Promise<StartResponse> {
    this.limits.takeForNetwork('phone_code_network');
    const counted = this.limits.take('phone_code_phone', JSON.stringify([organization.id, body.phone]));
    const issuing = { clientId: client.clientId, organizationId: organization.id, recipient: body.phone };
    try {
      const { code, expiresIn } = await this.codes.issue(PhoneCodeGrant, issuing);
      await this.gateway.send(body.phone, `Your code: ${code}`);
      return { expires_in: expiresIn };
    } catch (error) {
      counted.giveBack(); // no message was sent, so the person can repeat the request
      throw error;
    }
  }
}
