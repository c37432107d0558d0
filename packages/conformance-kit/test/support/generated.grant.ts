import { createHmac } from 'node:crypto';
import {
  AgentGuard,
  type AgentPrincipal,
  ApiRoute,
  Caller,
  ClientRequest,
  CustomerGuard,
  type CustomerPrincipal,
  CustomerService,
  GrantBody,
  type GrantOptions,
  type GrantRequest,
  type GrantResult,
  OAuthError,
  OneTimeCodes,
  Optional,
  PublicController,
  UUID,
} from '@customer-authorization/service/grant';
import { Delete, HttpCode, Post, type Type } from '@nestjs/common';
import { ArrayMaxSize, IsArray, IsBoolean, IsIn, IsInt, IsString, Matches, Max, MaxLength, Min } from 'class-validator';
import type { Random } from '../../../../test/fuzz/random.js';
import type { GrantKit } from '../../src/kit.js';
import { grantOf, type Services } from './grant-of.js';

const KEY = 'a key that the team shares with another system';
const LINK = '/v2/customer/kit_link';
const SCOPE = 'links:create';

type Field = readonly [name: string, rules: PropertyDecorator[], valueOf: (random: Random) => unknown];

const FIELDS: Field[] = [
  ['flag', [IsBoolean()], (random) => random.chance(0.5)],
  ['count', [IsInt(), Min(0), Max(1_000)], (random) => random.below(1_000)],
  ['color', [IsIn(['red', 'green'])], (random) => random.pick(['red', 'green'])],
  ['list', [IsArray(), ArrayMaxSize(5), IsString({ each: true }), MaxLength(20, { each: true })], () => ['one', 'two']],
  ['note', [Optional(), MaxLength(100)], (random) => `a note ${random.below(1e9)}`],
  ['pattern', [Matches(/^[A-Z]{2}-\d{4}$/)], (random) => `AB-${1_000 + random.below(9_000)}`],
  ['maybe', [Optional(), IsInt()], (random) => random.below(9)],
];

/** What a correct grant has. */
export interface GeneratedForm {
  fields: Field[];
  /** Another system signs the proof, or a route creates it for a caller or a client. */
  proof: 'signed' | 'route of a client' | 'route of a customer' | 'route of an agent';
  uses: number | 'unlimited';
  endsWith: 'caller' | 'sessions' | 'nothing';
  customer: 'new' | 'browser' | 'by key';
  groups: boolean;
  form: boolean;
  anyClient: boolean;
  lifetime: number;
}

export function randomForm(random: Random): GeneratedForm {
  const proof = random.pick<GeneratedForm['proof']>([
    ...(['signed', 'route of a client', 'route of a customer', 'route of an agent'] as const),
  ]);
  const customer = random.pick<GeneratedForm['customer']>(['new', 'browser', 'by key']);
  return {
    fields: FIELDS.filter(() => random.chance(0.4)),
    proof,
    uses: random.pick([1, 2, 5, 'unlimited']),
    endsWith: random.pick(['caller', 'sessions', 'nothing']),
    customer,
    groups: customer === 'browser' && proof === 'signed' && random.chance(0.5),
    form: random.chance(0.3),
    anyClient: random.chance(0.3),
    lifetime: random.pick([60, 600, 3_600]),
  };
}

class LinkBody {
  @Matches(UUID)
  organization_id!: string;

  @IsString()
  client_id!: string;
}

class LinkResponse {
  @IsString()
  code!: string;
}

class Body extends GrantBody {
  @Matches(UUID)
  override organization_id!: string;

  @Matches(/^[\w-]{20,64}$/)
  proof!: string;

  @Matches(/^[\w-]{43}$/)
  signature!: string;

  @Matches(/^\d{10}$/)
  ends!: string;
}

class LinkGrantBody extends GrantBody {
  @Matches(UUID)
  override organization_id!: string;

  @Matches(/^[\w-]{43}$/)
  proof!: string;
}

/** A correct grant of random parameters, proofs and customers. */
export function generatedGrant(form: GeneratedForm, random: Random): { grant: Type } & GrantKit {
  const { proof, uses, endsWith, customer, lifetime, fields } = form;
  const isSigned = proof === 'signed';
  class GeneratedBody extends (isSigned ? Body : LinkGrantBody) {}
  for (const [name, rules] of fields) for (const rule of rules) rule(GeneratedBody.prototype, name);

  const signatureOf = (organizationId: string, text: string, ends: string) =>
    createHmac('sha256', KEY).update(`${organizationId} ${text} ${ends}`).digest('base64url');
  const endsOf = { 'route of a client': {}, signed: {} } as Record<string, object>;
  const declared: GrantOptions<GeneratedBody, undefined> = {
    body: GeneratedBody,
    lifetime,
    ...(isSigned ? { uses } : { anyClient: form.anyClient }),
    ...(endsOf[proof] ?? { endsWith }),
    groups: form.groups,
    form: form.form,
    responds: ['organization_id'],
  };

  async function customerOf(request: GrantRequest<Body>, customers: CustomerService, services: Services, key: string) {
    const { groupId, organization, browser } = request;
    if (customer === 'by key') return services.byKey.customerOf(request, 'kit', key);
    if (customer === 'new') return customers.create({ organizationId: organization.id, groupId });
    const cookies = services.cookies;
    const space = { organizationId: organization.id, groupId };
    const found = await customers.findOrCreateForBrowser(cookies.read(browser.cookies, browser.origin), space);
    for (const line of cookies.setCookieLines(found)) browser.setCookie(line);
    return found;
  }

  async function redeem(
    request: GrantRequest<Body>,
    customers: CustomerService,
    services: Services,
  ): Promise<GrantResult> {
    const { body, organization } = request;
    if (!isSigned) {
      const redeemed = await services.codes.redeem<{ key?: string }>(request, body.proof);
      if (proof !== 'route of a client') return redeemed.customer;
      return customerOf(request, customers, services, redeemed.content.key ?? body.proof);
    }
    if (body.signature !== signatureOf(organization.id, body.proof, body.ends))
      throw OAuthError.invalidGrant('no proof');
    const end = new Date(Number(body.ends) * 1_000);
    if (uses !== 'unlimited') await services.uses.count(request, body.proof, end);
    else if (end.getTime() <= services.clock.now()) throw OAuthError.invalidGrant('expired');
    return customerOf(request, customers, services, body.proof);
  }

  const controllerOf = (grant: Type) => {
    @PublicController(LINK.slice(1))
    class LinkController {
      constructor(
        private readonly codes: OneTimeCodes,
        private readonly customers: CustomerService,
      ) {}

      @Post('client')
      @HttpCode(200)
      @ApiRoute({ summary: 'Create a link', response: LinkResponse })
      async ofClient(
        @ClientRequest(LinkBody, { grant: 'kit_generated' }) { client, organization }: ClientRequest<LinkBody>,
      ): Promise<LinkResponse> {
        const content = { key: crypto.randomUUID() };
        const { clientId } = client;
        const { code } = await this.codes.issue(grant, { clientId, organizationId: `${organization?.id}`, content });
        return { code };
      }

      @Post('customer')
      @HttpCode(200)
      @ApiRoute({ summary: 'Create a link of a customer', response: LinkResponse })
      async ofCustomer(@Caller(CustomerGuard) caller: CustomerPrincipal): Promise<LinkResponse> {
        return this.issued(grant, caller, caller.clientId ?? '', caller.entityId);
      }

      @Post('agent/:customer/:client')
      @HttpCode(200)
      @ApiRoute({ summary: 'Create a link of an agent', response: LinkResponse })
      async ofAgent(@Caller(AgentGuard(SCOPE)) caller: AgentPrincipal): Promise<LinkResponse> {
        const { entityId } = await this.customers.create(caller.organizationId);
        return this.issued(grant, caller, caller.clientId ?? '', entityId);
      }

      @Delete(':id')
      @HttpCode(204)
      @ApiRoute({ summary: 'Do nothing' })
      async delete(@Caller(CustomerGuard) _caller: CustomerPrincipal): Promise<void> {}

      private async issued(type: Type, caller: CustomerPrincipal | AgentPrincipal, clientId: string, entityId: string) {
        const { organizationId } = caller;
        const found = await this.customers.find(entityId, organizationId);
        if (!found) throw OAuthError.invalidRequest('customer: unknown');
        const { code } = await this.codes.issue(type, { clientId, organizationId, caller, customer: found });
        return { code };
      }
    }
    return LinkController;
  };

  const valuesOf = () => Object.fromEntries(fields.map(([name, , newValue]) => [name, newValue(random)]));
  const { grant, ...extension } = grantOf<Body>(
    'kit_generated',
    declared as unknown as GrantOptions<Body, undefined>,
    redeem,
    (type) => ({ controllers: [controllerOf(type)], customerKeyFile: 'KIT_GENERATED_KEY_FILE' }),
  );
  return {
    grant,
    ...extension,
    valid: async (environment) => {
      const { organizationId, clientId, service, newCustomer, agentToken } = environment;
      if (isSigned) {
        const text = crypto.randomUUID();
        const ends = `${Math.floor(service.clock.now() / 1_000) + lifetime}`;
        return { ...valuesOf(), proof: text, ends, signature: signatureOf(organizationId, text, ends) };
      }
      const body = { client_id: clientId, organization_id: organizationId };
      const post = async (path: string, sent: unknown, token?: string) =>
        (await service.post(`${LINK}/${path}`, sent, token ? { authorization: `Bearer ${token}` } : {})).body.code;
      if (proof === 'route of a client') return { ...valuesOf(), proof: await post('client', body) };
      if (proof === 'route of a customer')
        return { ...valuesOf(), proof: await post('customer', '', (await newCustomer()).accessToken) };
      return { ...valuesOf(), proof: await post(`agent/x/${clientId}`, '', await agentToken(SCOPE)) };
    },
    ...(isSigned && {
      forged: ({ proof: text, signature }) => [
        { proof: `${text}`.replaceAll(/\d/g, '7') },
        { signature: `${signature}`.split('').reverse().join('') },
        { ends: '9999999999' },
      ],
    }),
  };
}
