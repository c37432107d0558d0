import { Module } from '@nestjs/common';
import { AccessTokenModule } from '../../access-token/access-token.module.js';
import { ForeignJwts } from '../../oauth/foreign-jwts.js';
import { RedemptionModule } from '../../redemption/redemption.module.js';
import { RegistryModule } from '../../registry/registry.module.js';
import { SessionModule } from '../../session/session.module.js';
import { BearerGuard } from './bearer.guard.js';
import { BearerAuthGuard, BearerStrategy } from './bearer.strategy.js';
import { ClientAssertions } from './client-assertions.js';
import { ClientAuthentication } from './client-authentication.js';
import { FailedAuthentications } from './failed-authentications.js';
import { OperatorGuard } from './operator.guard.js';
import { OperatorCredentials } from './operator-credentials.js';
import { ClientGuard, ResourceServerGuard, SecretClientGuard } from './secret.guards.js';
import { TrustedIssuerTokens } from './trusted-issuer-tokens.js';

const EXPORTED = [
  BearerAuthGuard,
  BearerGuard,
  BearerStrategy,
  ClientAuthentication,
  FailedAuthentications,
  ForeignJwts,
  OperatorCredentials,
  ClientGuard,
  OperatorGuard,
  ResourceServerGuard,
  SecretClientGuard,
  TrustedIssuerTokens,
];

/** Authenticates the callers of all routes: customers, agents, clients, resource servers and operators. */
@Module({
  imports: [AccessTokenModule, RedemptionModule, RegistryModule, SessionModule],
  providers: [...EXPORTED, ClientAssertions],
  exports: EXPORTED,
})
export class CallersModule {}
