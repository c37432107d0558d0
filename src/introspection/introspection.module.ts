import { Module } from '@nestjs/common';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { BearerModule } from '../bearer/bearer.module.js';
import { OneTimeCodeModule } from '../one-time-code/one-time-code.module.js';
import { OperatorModule } from '../operator/operator.module.js';
import { RefreshTokenModule } from '../refresh-token/refresh-token.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { CustomerTokenController } from './customer-token.controller.js';
import { IntrospectionController } from './introspection.controller.js';
import { TokenExplanation } from './token-explanation.js';
import { TokenIntrospection } from './token-introspection.js';
import { TokenRevocation } from './token-revocation.js';

/**
 * Introspection (RFC 7662), revocation (RFC 7009), and the routes with which a customer reads and ends its own token.
 */
@Module({
  imports: [RegistryModule, AccessTokenModule, OneTimeCodeModule, RefreshTokenModule, BearerModule, OperatorModule],
  controllers: [CustomerTokenController, IntrospectionController],
  providers: [TokenIntrospection, TokenRevocation, TokenExplanation],
})
export class IntrospectionModule {}
