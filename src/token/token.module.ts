import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { FeedModule } from '../feed/feed.module.js';
import { IdentityModule } from '../identity/identity.module.js';
import { RedemptionModule } from '../redemption/redemption.module.js';
import { SessionModule } from '../session/session.module.js';
import { AttemptLimits } from './attempt-limits.js';
import { CustomerClaimsSource } from './customer-claims.js';
import { CustomerRevocationController } from './customer-revocation.controller.js';
import { CustomerTokenController } from './customer-token.controller.js';
import { GrantRegistry } from './grant-registry.js';
import { TokenController } from './token.controller.js';
import { TokenRevocation } from './token-revocation.js';

/** Issues customer tokens, and ends them. The token endpoint finds its grants among the providers of all modules. */
@Module({
  imports: [DiscoveryModule, AccessTokenModule, FeedModule, IdentityModule, RedemptionModule, SessionModule],
  controllers: [TokenController, CustomerTokenController, CustomerRevocationController],
  providers: [GrantRegistry, CustomerClaimsSource, AttemptLimits, TokenRevocation],
  exports: [GrantRegistry, TokenRevocation],
})
export class TokenModule {}
