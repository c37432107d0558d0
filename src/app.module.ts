import { Module } from '@nestjs/common';
import { AgentAuthModule } from './agent-auth/agent-auth.module.js';
import { DiscoveryRoutesModule } from './discovery/discovery-routes.module.js';
import { AgentTokenGrantModule } from './grants/agent-token/agent-token.grant.js';
import { AnonymousGrantModule } from './grants/anonymous/anonymous.grant.js';
import { CookieGrantModule } from './grants/cookie/cookie.grant.js';
import { IdentityTokenGrantModule } from './grants/identity-token/identity-token.grant.js';
import { JwtBearerGrantModule } from './grants/jwt-bearer/jwt-bearer.grant.js';
import { RefreshTokenGrantModule } from './grants/refresh-token/refresh-token.grant.js';
import { RoutesModule } from './http/routes/routes.module.js';
import { OperatorCustomersModule } from './operator/customers/operator-customers.module.js';
import { OperatorRegistryModule } from './operator/registry/operator-registry.module.js';
import { TokenModule } from './token/token.module.js';
import { TransferModule } from './transfer/transfer.module.js';

@Module({
  imports: [
    RoutesModule,
    TokenModule,
    TransferModule,
    AgentAuthModule,
    OperatorCustomersModule,
    OperatorRegistryModule,
    DiscoveryRoutesModule,
    CookieGrantModule,
    AnonymousGrantModule,
    AgentTokenGrantModule,
    IdentityTokenGrantModule,
    JwtBearerGrantModule,
    RefreshTokenGrantModule,
  ],
})
export class AppModule {}
