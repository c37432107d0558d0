import { HttpCode, Post, type Type } from '@nestjs/common';
import { IsIn, IsInt, IsObject, IsString } from 'class-validator';
import {
  ApiProperty,
  ApiRoute,
  BearerGuard,
  Caller,
  ClientRequest,
  CustomerService,
  defineExtension,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
  OneTimeCodes,
  Optional,
  type Principal,
  PublicController,
} from '../../src/public/grant.js';

export const CODES = '/v2/customer/test_codes';
export const CODES_OF_CALLER = `${CODES}/of_caller`;
export const CODE_LIFETIME_SECONDS = 600;

class RedeemBody extends GrantBody {
  @IsString()
  override organization_id!: string;

  @IsString()
  code!: string;

  @Optional()
  @IsString()
  recipient?: string;
}

/** Its codes name no customer, so the grant creates one. */
@GrantType('test_code', { body: RedeemBody, lifetime: CODE_LIFETIME_SECONDS, mayRespond: ['content'] })
class CodeGrant implements Grant<RedeemBody> {
  constructor(
    protected readonly codes: OneTimeCodes,
    private readonly customers: CustomerService,
  ) {}

  async grant(request: GrantRequest<RedeemBody>): Promise<GrantResult> {
    const { code, recipient } = request.body;
    const { content, organizationId } = await this.codes.redeem(request, code, recipient);
    return { ...(await this.customers.create(organizationId)), response: { content } };
  }
}

@GrantType('test_code_of_any_client', { body: RedeemBody, lifetime: CODE_LIFETIME_SECONDS, anyClient: true })
class AnyClientGrant extends CodeGrant {}

@GrantType('test_code_of_two_guesses', { body: RedeemBody, lifetime: CODE_LIFETIME_SECONDS, guesses: 2 })
class TwoGuessesGrant extends CodeGrant {}

class UnknownOrganizationBody extends GrantBody {
  @IsString()
  code!: string;
}

/** The code decides about the organization. */
@GrantType('test_code_of_organization', { body: UnknownOrganizationBody, lifetime: CODE_LIFETIME_SECONDS })
class OrganizationGrant implements Grant<UnknownOrganizationBody> {
  constructor(
    private readonly codes: OneTimeCodes,
    private readonly customers: CustomerService,
  ) {}

  async grant(request: GrantRequest<UnknownOrganizationBody>): Promise<GrantResult> {
    const { organizationId } = await this.codes.redeem(request, request.body.code);
    return this.customers.create(organizationId);
  }
}

/** Its codes lead to the customer for whom they were issued. */
@GrantType('test_code_of_caller', { body: RedeemBody, lifetime: CODE_LIFETIME_SECONDS, endsWith: 'caller' })
class CallerGrant implements Grant<RedeemBody> {
  constructor(private readonly codes: OneTimeCodes) {}

  async grant(request: GrantRequest<RedeemBody>): Promise<GrantResult> {
    return (await this.codes.redeem(request, request.body.code)).customer;
  }
}

@GrantType('test_code_of_sessions', { body: RedeemBody, lifetime: CODE_LIFETIME_SECONDS, endsWith: 'sessions' })
class SessionsGrant extends CallerGrant {}

@GrantType('test_code_of_printed_letter', { body: RedeemBody, lifetime: CODE_LIFETIME_SECONDS, endsWith: 'nothing' })
class PrintedLetterGrant extends CallerGrant {}

const GRANTS: Record<string, Type> = {
  test_code: CodeGrant,
  test_code_of_any_client: AnyClientGrant,
  test_code_of_two_guesses: TwoGuessesGrant,
  test_code_of_organization: OrganizationGrant,
  test_code_of_caller: CallerGrant,
  test_code_of_sessions: SessionsGrant,
  test_code_of_printed_letter: PrintedLetterGrant,
};

class IssueBody {
  @IsString()
  client_id!: string;

  @IsIn(Object.keys(GRANTS))
  grant!: string;

  @Optional()
  @IsString()
  recipient?: string;

  @Optional()
  @IsInt()
  digits?: number;

  @Optional()
  @IsObject()
  content?: object;
}

class PublicIssueBody extends IssueBody {
  @IsString()
  organization_id!: string;
}

class CallerIssueBody extends IssueBody {
  @Optional()
  @IsString()
  customer_id?: string;
}

class IssuedCodeResponse {
  @IsString()
  code!: string;

  @ApiProperty('The lifetime.')
  @IsInt()
  expires_in!: number;
}

/** Responds with each code, which a real route would send to the recipient. */
@PublicController('v2/customer/test_codes')
class CodeController {
  constructor(
    private readonly codes: OneTimeCodes,
    private readonly customers: CustomerService,
  ) {}

  @Post()
  @ApiRoute({ summary: 'Issue a code', response: IssuedCodeResponse })
  @HttpCode(200)
  async issue(
    @ClientRequest(PublicIssueBody) { body, client, organization }: ClientRequest<PublicIssueBody>,
  ): Promise<IssuedCodeResponse> {
    const { grant, recipient, digits, content } = body;
    const options = {
      ...{ clientId: client.clientId, organizationId: organization.id },
      ...(recipient !== undefined && { recipient }),
      ...(digits !== undefined && { digits }),
      ...(content && { content }),
    };
    const { code, expiresIn } = await this.codes.issue(GRANTS[grant] as Type, options);
    return { code, expires_in: expiresIn };
  }

  @Post('of_caller')
  @ApiRoute({
    summary: 'Issue a code of a caller',
    response: IssuedCodeResponse,
    errors: ['429 temporarily_unavailable'],
  })
  @HttpCode(200)
  async issueForCaller(
    @Caller(BearerGuard) caller: Principal,
    @ClientRequest(CallerIssueBody) { body, client }: ClientRequest<CallerIssueBody>,
  ): Promise<IssuedCodeResponse> {
    const { organizationId } = caller;
    const { grant, customer_id } = body;
    const customerId = customer_id ?? (caller.kind === 'customer' ? caller.entityId : undefined);
    const customer = customerId === undefined ? undefined : await this.customers.find(customerId, organizationId);
    const options = { clientId: client.clientId, organizationId, ...(customer && { customer }) };
    const { code, expiresIn } = await this.codes.issue(GRANTS[grant] as Type, {
      ...options,
      ...(grant === 'test_code_of_caller' && { caller }),
    });
    return { code, expires_in: expiresIn };
  }
}

/** Routes that issue codes of `OneTimeCodes`, and grants that redeem them, each with other rules. */
export const codeExtension = defineExtension({ grants: Object.values(GRANTS), controllers: [CodeController] });
