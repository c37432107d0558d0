import { Module } from '@nestjs/common';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { AgentAuthModule } from '../agent-auth/agent-auth.module.js';
import { AdminGuard } from '../oauth/admin.guard.js';
import { OneTimeCodeModule } from '../one-time-code/one-time-code.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { CustomerAccountController } from './customer-account.controller.js';
import { MetadataController } from './metadata.controller.js';
import { TokenInquiryController } from './token-inquiry.controller.js';
import { TokenInquiry } from './token-inquiry.js';

/** What callers ask about tokens, how they end them, and what this server says of itself. */
@Module({
  imports: [RegistryModule, AccessTokenModule, OneTimeCodeModule, AgentAuthModule],
  controllers: [CustomerAccountController, TokenInquiryController, MetadataController],
  providers: [TokenInquiry, AdminGuard],
})
export class AccountsModule {}
