import { Module } from '@nestjs/common';
import { PassportModule } from '@nestjs/passport';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { BearerGuard } from './bearer.guard.js';
import { BearerStrategy } from './bearer.strategy.js';
import { TrustedIssuerTokens } from './trusted-issuer-tokens.js';

/** Authenticates the callers that present a bearer token: agents and customers (RFC 6750). */
@Module({
  imports: [PassportModule, AccessTokenModule],
  providers: [BearerStrategy, BearerGuard, TrustedIssuerTokens],
  exports: [BearerGuard, BearerStrategy],
})
export class BearerModule {}
