import { Module } from '@nestjs/common';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { IdentityModule } from '../identity/identity.module.js';
import { OperatorModule } from '../operator/operator.module.js';
import { OrganizationUserModule } from '../organization-user/organization-user.module.js';
import { SessionModule } from '../session/session.module.js';
import { CustomerRevocationController } from './customer-revocation.controller.js';
import { CustomerTokenController } from './customer-token.controller.js';
import { EndSessionsController } from './end-sessions.controller.js';
import { IntrospectionController } from './introspection.controller.js';
import { RevocationFeedController } from './revocation-feed.controller.js';
import { RevocationFeed } from './revocation-feed.js';
import { TokenExplanation } from './token-explanation.js';
import { TokenRevocation } from './token-revocation.js';

/** Introspection (RFC 7662), revocation (RFC 7009), and what a customer does with its own tokens. */
@Module({
  imports: [AccessTokenModule, IdentityModule, OrganizationUserModule, OperatorModule, SessionModule],
  controllers: [
    CustomerRevocationController,
    CustomerTokenController,
    EndSessionsController,
    IntrospectionController,
    RevocationFeedController,
  ],
  providers: [TokenRevocation, TokenExplanation, RevocationFeed],
})
export class IntrospectionModule {}
