import { Module } from '@nestjs/common';
import { IdentityModule } from '../../identity/identity.module.js';
import { TokenModule } from '../../token/token.module.js';
import { AgentTokenGrant } from './agent-token.grant.js';
import { CustomerController } from './customer.controller.js';

@Module({ imports: [IdentityModule, TokenModule], controllers: [CustomerController], providers: [AgentTokenGrant] })
export class AgentTokenGrantModule {}
