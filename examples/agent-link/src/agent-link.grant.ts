import {
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
  OneTimeCodes,
} from '@customer-authorization/service/grant';
import { IsString, Matches } from 'class-validator';

export class AgentLinkBody extends GrantBody {
  @IsString() override organization_id!: string;
  @Matches(/^[\w-]{43}$/, { message: 'must be the code of a link' }) code!: string;
}

/** The browser that opens the link first gets a token of the customer. The token ends with the token of the agent. */
@GrantType('agent_link', { body: AgentLinkBody, lifetime: 3_600, endsWith: 'caller' })
export class AgentLinkGrant implements Grant<AgentLinkBody> {
  constructor(private readonly codes: OneTimeCodes) {}

  async grant(request: GrantRequest<AgentLinkBody>): Promise<GrantResult> {
    return (await this.codes.redeem(request, request.body.code)).customer;
  }
}
