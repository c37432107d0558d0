import { randomInt } from 'node:crypto';
import { HttpCode, Injectable, Post } from '@nestjs/common';
import { IsString, Matches } from 'class-validator';
import {
  AgentGuard,
  type AgentPrincipal,
  ApiRoute,
  Caller,
  ClientRequest,
  CustomerService,
  defineExtension,
  Limits,
  OAuthError,
  PublicController,
  randomSecret,
  sha256,
  UUID,
} from '../../src/public/grant.js';
import { SmsGateway } from './sms-gateway.js';

export const SMS_LIMITS = { sms_network: '20/600', sms_phone: '3/600' } as const;

class SmsStartBody {
  @IsString()
  client_id!: string;

  @IsString()
  organization_id!: string;

  @Matches(/^\+\d{8,15}$/, { message: 'must be + and 8 to 15 digits' })
  phone!: string;
}

@PublicController('v2/customer/sms_code')
class SmsController {
  constructor(
    private readonly gateway: SmsGateway,
    private readonly limits: Limits<typeof SMS_LIMITS>,
  ) {}

  @Post()
  @ApiRoute({ summary: 'Send a code by SMS', errors: ['429 temporarily_unavailable'] })
  @HttpCode(200)
  async start(@ClientRequest(SmsStartBody) { body }: ClientRequest<SmsStartBody>): Promise<object> {
    this.limits.takeForNetwork('sms_network');
    const counted = this.limits.take('sms_phone', body.phone);
    const code = String(randomInt(1_000_000)).padStart(6, '0');
    // a real route stores the code before this call
    await this.gateway.send(body.phone, `Your code: ${code}`).catch((error) => {
      counted.giveBack(); // no message was sent, so the user can repeat the request
      throw error;
    });
    return {};
  }
}

class LinkBody {
  @IsString()
  client_id!: string;

  @Matches(UUID, { message: 'must be the id of a customer' })
  entity_id!: string;
}

class LinkResponse {
  @IsString()
  url!: string;
}

/** The links in memory. A real extension stores them in a table. */
@Injectable()
class Links {
  private readonly links: object[] = [];

  async store(link: { hash: string; clientId: string; entityId: string; proof: string }): Promise<void> {
    this.links.push(link);
  }
}

@PublicController('v2/customer/one_time_link')
class LinkController {
  constructor(
    private readonly customers: CustomerService,
    private readonly links: Links,
  ) {}

  @Post()
  @ApiRoute({
    summary: 'Create a link that signs a customer in once',
    response: LinkResponse,
    errors: ['429 temporarily_unavailable'],
  })
  @HttpCode(200)
  async create(
    @Caller(AgentGuard('links:create')) agent: AgentPrincipal,
    @ClientRequest(LinkBody) { body, client }: ClientRequest<LinkBody>,
  ): Promise<LinkResponse> {
    const [page] = client.redirectUris;
    if (page === undefined) throw OAuthError.invalidRequest('client_id: has no redirect URI');
    const customer = await this.customers.find(body.entity_id, agent.organizationId);
    if (!customer) throw OAuthError.invalidRequest('entity_id: unknown');
    const code = randomSecret('base64url');
    const [{ clientId }, { entityId }, proof] = [client, customer, await agent.proof(customer)];
    await this.links.store({ hash: sha256(code), clientId, entityId, proof });
    return { url: `${page}#code=${code}` };
  }
}

/** Routes of an extension: one calls another system, and one is for agents. */
export const smsExtension = defineExtension({
  controllers: [SmsController, LinkController],
  providers: [SmsGateway, Links],
  limits: SMS_LIMITS,
});
