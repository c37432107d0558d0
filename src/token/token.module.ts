import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { IdentityModule } from '../identity/identity.module.js';
import { AttemptLimits } from './attempt-limits.js';
import { CustomerLineages } from './customer-lineages.js';
import { GrantRegistry } from './grant-registry.js';
import { TokenController } from './token.controller.js';
import { TokenEndpoint } from './token.endpoint.js';

/** The token endpoint. It finds the grants among the providers of all modules. */
@Module({
  imports: [DiscoveryModule, AccessTokenModule, IdentityModule],
  controllers: [TokenController],
  providers: [TokenEndpoint, GrantRegistry, CustomerLineages, AttemptLimits],
  exports: [TokenEndpoint, GrantRegistry],
})
export class TokenModule {}
