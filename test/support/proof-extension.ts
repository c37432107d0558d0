import { HttpCode, Injectable, Post } from '@nestjs/common';
import { IsString } from 'class-validator';
import {
  type AgentPrincipal,
  ApiRoute,
  BearerGuard,
  Caller,
  CustomerService,
  defineExtension,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
  OAuthError,
  Optional,
  type Principal,
  PublicController,
  randomSecret,
  sha256,
  ValidatedBody,
} from '../../src/public/grant.js';

export const PROOF = '/v2/customer/test_proof';
export const PROOF_SCOPE = 'proofs:redeem';

class CreateBody {
  /** The customer of an agent's proof. */
  @Optional()
  @IsString()
  customer_id?: string;
}

class CreateResponse {
  @IsString()
  code!: string;
}

/** The later parameters replace values of the result, as a grant with a mistake could. */
class RedeemBody extends GrantBody {
  @IsString()
  code!: string;

  @Optional()
  @IsString()
  result_entity_id?: string;

  @Optional()
  @IsString()
  result_organization_id?: string;

  @Optional()
  @IsString()
  result_proof?: string;

  @Optional()
  @IsString()
  result_generation?: string;
}

interface StoredProof {
  entityId: string | undefined;
  organizationId: string;
  proof: string;
}

/** The proofs in memory. A real extension stores them in a table, as examples/device-approval does. */
@Injectable()
export class Proofs {
  readonly byHash = new Map<string, StoredProof>();
  /** What happens after the check of the bearer token, and before the proof is made. */
  before = async (): Promise<void> => undefined;

  constructor(private readonly customers: CustomerService) {}

  async create(principal: Principal, customerId: string | undefined): Promise<CreateResponse> {
    const { organizationId } = principal;
    const code = randomSecret('base64url');
    await this.before();
    if (principal.kind === 'customer') {
      const { entityId } = principal;
      this.byHash.set(sha256(code), { entityId, organizationId, proof: await principal.proof() });
      return { code };
    }
    const customer = customerId === undefined ? undefined : await this.customers.find(customerId, organizationId);
    const proof = await principal.proof(customer);
    this.byHash.set(sha256(code), { entityId: customer?.entityId, organizationId, proof });
    return { code };
  }

  redeem({ code, ...body }: RedeemBody): GrantResult {
    const stored = this.byHash.get(sha256(code));
    if (!stored) throw OAuthError.invalidGrant('unknown');
    return {
      entityId: body.result_entity_id ?? stored.entityId ?? '',
      organizationId: body.result_organization_id ?? stored.organizationId,
      proof: body.result_proof ?? stored.proof,
      ...(body.result_generation !== undefined && { generation: Number(body.result_generation) }),
    };
  }
}

@PublicController('v2/customer/test_proof')
class ProofController {
  constructor(private readonly proofs: Proofs) {}

  @Post()
  @ApiRoute({
    summary: 'Create a proof of a customer',
    response: CreateResponse,
    errors: ['429 temporarily_unavailable'],
  })
  @HttpCode(200)
  create(
    @Caller(BearerGuard) principal: Principal,
    @ValidatedBody(CreateBody) { customer_id }: CreateBody,
  ): Promise<CreateResponse> {
    return this.proofs.create(principal, customer_id);
  }
}

@GrantType('test_proof', { body: RedeemBody, endsWith: 'caller' })
class ProofGrant implements Grant<RedeemBody> {
  constructor(private readonly proofs: Proofs) {}

  grant = async ({ body }: GrantRequest<RedeemBody>): Promise<GrantResult> => this.proofs.redeem(body);
}

@GrantType('test_proof_of_agent', { body: RedeemBody, endsWith: 'caller', agentScope: PROOF_SCOPE })
class AgentProofGrant implements Grant<RedeemBody, AgentPrincipal> {
  constructor(private readonly proofs: Proofs) {}

  grant = async ({ body }: GrantRequest<RedeemBody, AgentPrincipal>): Promise<GrantResult> => this.proofs.redeem(body);
}

/** A customer or an agent creates a proof by a route, and a grant redeems it as often as it is sent. */
export const proofExtension = defineExtension({
  grants: [ProofGrant, AgentProofGrant],
  controllers: [ProofController],
  providers: [Proofs],
});
