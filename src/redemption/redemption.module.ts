import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { CustomerModule } from '../customer/customer.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { SessionModule } from '../session/session.module.js';
import { AgentRefreshTokens } from './agent-refresh-tokens.js';
import { AuthorizationCodes } from './authorization-codes.js';
import { CallerNetworks } from './caller-networks.js';
import { CustomerRefreshTokens } from './customer-refresh-tokens.js';
import { ProofUse } from './proof-use.entity.js';
import { ProofUses } from './proof-uses.js';
import { Proofs } from './proofs.js';
import { TransferCodes } from './transfer-codes.js';

const EXPORTED = [AgentRefreshTokens, AuthorizationCodes, CustomerRefreshTokens, ProofUses, Proofs, TransferCodes];

/**
 * What a client redeems for tokens: codes, refresh tokens and proofs. `redeemable-codes.ts` and `refresh-tokens.ts` have
 * the rules that customers and agents share.
 */
@Module({
  imports: [TypeOrmModule.forFeature([ProofUse]), AccessTokenModule, CustomerModule, RegistryModule, SessionModule],
  providers: [...EXPORTED, CallerNetworks],
  exports: EXPORTED,
})
export class RedemptionModule {}
