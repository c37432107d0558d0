import {
  AgentGuard,
  type AgentPrincipal,
  ApiRoute,
  Caller,
  ClientRequest,
  CustomerService,
  OAuthError,
  OneTimeCodes,
  PublicController,
} from '@customer-authorization/service/grant';
import { HttpCode, Post } from '@nestjs/common';
import { IsInt, IsString, IsUUID } from 'class-validator';
import { AgentLinkGrant } from './agent-link.grant.js';

class StartBody {
  /** The client whose page opens the link. */
  @IsString() client_id!: string;
  @IsUUID() entity_id!: string;
}

class StartResponse {
  /** The link for the customer. Browsers send no part after # to a server, and a script of the page reads the code there. */
  @IsString() url!: string;
  /** The lifetime of the link in seconds. */
  @IsInt() expires_in!: number;
}

@PublicController('v2/customer/agent_link')
export class AgentLinkController {
  constructor(
    private readonly codes: OneTimeCodes,
    private readonly customers: CustomerService,
  ) {}

  @Post()
  @ApiRoute({
    summary: 'Create a link for the grant agent_link',
    response: StartResponse,
    errors: ['429 temporarily_unavailable'],
  })
  @HttpCode(200)
  async start(
    @Caller(AgentGuard('agent_link:create')) agent: AgentPrincipal,
    @ClientRequest(StartBody, { grant: 'agent_link' }) { body, client }: ClientRequest<StartBody>,
  ): Promise<StartResponse> {
    const [page] = client.redirectUris;
    if (page === undefined) throw OAuthError.invalidRequest('client_id: has no redirect URI');
    const { organizationId } = agent;
    const customer = await this.customers.find(body.entity_id, organizationId);
    if (!customer) throw OAuthError.invalidRequest('entity_id: unknown');
    const issuing = { clientId: client.clientId, organizationId, caller: agent, customer };
    const { code, expiresIn } = await this.codes.issue(AgentLinkGrant, issuing);
    return { url: `${page}#code=${code}`, expires_in: expiresIn };
  }
}
