import { Module } from '@nestjs/common';
import { CustomerModule } from '../../customer/customer.module.js';
import { RegistryModule } from '../../registry/registry.module.js';
import { SessionModule } from '../../session/session.module.js';
import { IdentityModule } from '../identity.module.js';
import { IdleCustomers } from './idle-customers.js';
import { Purge } from './purge.js';

@Module({
  imports: [CustomerModule, IdentityModule, RegistryModule, SessionModule],
  providers: [IdleCustomers, Purge],
  exports: [Purge],
})
export class PurgeModule {}
