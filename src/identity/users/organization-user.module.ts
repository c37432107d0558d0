import { Module } from '@nestjs/common';
import { CustomerModule } from '../../customer/customer.module.js';
import { CallersModule } from '../../http/callers/callers.module.js';
import { SessionModule } from '../../session/session.module.js';
import { IdentityModule } from '../identity.module.js';
import { CustomerDataController } from './customer-data.controller.js';
import { EndSessionsController } from './end-sessions.controller.js';
import { NamedCustomers } from './named-customers.js';
import { OrganizationUsers } from './organization-users.js';
import { UserSignIns } from './user-sign-ins.js';

/** The users of organizations, by the organizations' own ids (protocol §5.7). */
@Module({
  imports: [CallersModule, CustomerModule, IdentityModule, SessionModule],
  controllers: [CustomerDataController, EndSessionsController],
  providers: [NamedCustomers, OrganizationUsers, UserSignIns],
  exports: [NamedCustomers, OrganizationUsers],
})
export class OrganizationUserModule {}
