import { Module } from '@nestjs/common';
import { AccessTokenModule } from '../../access-token/access-token.module.js';
import { IdentityModule } from '../../identity/identity.module.js';
import { OrganizationUserModule } from '../../organization-user/organization-user.module.js';
import { TokenModule } from '../../token/token.module.js';
import { AgentTokenGrant } from './agent-token.grant.js';
import { CustomerController } from './customer.controller.js';

@Module({
  imports: [AccessTokenModule, IdentityModule, OrganizationUserModule, TokenModule],
  controllers: [CustomerController],
  providers: [AgentTokenGrant],
})
export class AgentTokenGrantModule {}
