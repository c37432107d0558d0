import { Module } from '@nestjs/common';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { BearerGuard } from './bearer.guard.js';
import { BearerAuthentication } from './bearer-authentication.js';
import { Descents } from './descents.js';
import { TrustedIssuerTokens } from './trusted-issuer-tokens.js';

@Module({
  imports: [AccessTokenModule, RegistryModule],
  providers: [BearerAuthentication, BearerGuard, Descents, TrustedIssuerTokens],
  exports: [BearerAuthentication, BearerGuard, Descents, TrustedIssuerTokens],
})
export class BearerModule {}
