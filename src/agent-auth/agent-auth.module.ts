import { Module } from '@nestjs/common';
import { PassportModule } from '@nestjs/passport';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { BearerGuard } from './bearer.guard.js';
import { BearerStrategy } from './bearer.strategy.js';

/** Who calls with a bearer: an agent or a customer. */
@Module({
  imports: [PassportModule, AccessTokenModule],
  providers: [BearerStrategy, BearerGuard],
  exports: [BearerGuard],
})
export class AgentAuthModule {}
