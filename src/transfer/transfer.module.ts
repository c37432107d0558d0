import { Module } from '@nestjs/common';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { BearerModule } from '../bearer/bearer.module.js';
import { IdentityModule } from '../identity/identity.module.js';
import { OneTimeCodeModule } from '../one-time-code/one-time-code.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { TransferController } from './transfer.controller.js';
import { Transfers } from './transfers.js';

/** Identity transfer: another device gets an access token of the same customer. */
@Module({
  imports: [AccessTokenModule, RegistryModule, IdentityModule, OneTimeCodeModule, BearerModule],
  controllers: [TransferController],
  providers: [Transfers],
  exports: [Transfers],
})
export class TransferModule {}
