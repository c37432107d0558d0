import { Module } from '@nestjs/common';
import { CustomerModule } from '../customer/customer.module.js';
import { CallersModule } from '../http/callers/callers.module.js';
import { IdentityModule } from '../identity/identity.module.js';
import { RedemptionModule } from '../redemption/redemption.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { SessionModule } from '../session/session.module.js';
import { TransferController } from './transfer.controller.js';
import { Transfers } from './transfers.js';

/** Identity transfer: another device gets an access token of the same customer. */
@Module({
  imports: [CallersModule, CustomerModule, IdentityModule, RedemptionModule, RegistryModule, SessionModule],
  controllers: [TransferController],
  providers: [Transfers],
  exports: [Transfers],
})
export class TransferModule {}
