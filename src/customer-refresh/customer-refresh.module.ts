import { Module } from '@nestjs/common';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { IdentityModule } from '../identity/identity.module.js';
import { OperatorModule } from '../operator/operator.module.js';
import { RefreshTokenModule } from '../refresh-token/refresh-token.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { CustomerRefreshParticipant } from './customer-refresh-participant.js';
import { CustomerRefreshTokens } from './customer-refresh-tokens.js';
import { RefreshFamilyController } from './refresh-family.controller.js';

/** Refresh tokens of customers (protocol §4.8). */
@Module({
  imports: [AccessTokenModule, IdentityModule, OperatorModule, RefreshTokenModule, RegistryModule],
  controllers: [RefreshFamilyController],
  providers: [CustomerRefreshTokens, CustomerRefreshParticipant],
  exports: [CustomerRefreshTokens],
})
export class CustomerRefreshModule {}
