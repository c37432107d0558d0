import { Get } from '@nestjs/common';
import { IsString } from 'class-validator';
import {
  AgentGuard,
  type AgentPrincipal,
  ApiRoute,
  Caller,
  CustomerGuard,
  type CustomerPrincipal,
  PublicController,
} from '../../src/public/grant.js';

class ProofResponse {
  @IsString()
  proof!: string;
}

/** Routes of an extension that make a proof of the caller, for a grant that ends with it. */
@PublicController('proof')
export class ProofController {
  @Get('customer')
  @ApiRoute({ summary: 'Make a proof of a customer', response: ProofResponse })
  async ofCustomer(@Caller(CustomerGuard) customer: CustomerPrincipal): Promise<ProofResponse> {
    return { proof: await customer.proof() };
  }

  @Get('agent')
  @ApiRoute({ summary: 'Make a proof of an agent', response: ProofResponse })
  async ofAgent(@Caller(AgentGuard('customers:own')) agent: AgentPrincipal): Promise<ProofResponse> {
    return { proof: await agent.proof() };
  }
}
