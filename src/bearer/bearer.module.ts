import { Module } from '@nestjs/common';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { SessionModule } from '../session/session.module.js';
import { BearerGuard } from './bearer.guard.js';
import { BearerAuthGuard, BearerStrategy } from './bearer.strategy.js';
import { TrustedIssuerTokens } from './trusted-issuer-tokens.js';

@Module({
  imports: [AccessTokenModule, RegistryModule, SessionModule],
  providers: [BearerStrategy, BearerAuthGuard, BearerGuard, TrustedIssuerTokens],
  exports: [BearerAuthGuard, BearerGuard, TrustedIssuerTokens],
})
export class BearerModule {}
