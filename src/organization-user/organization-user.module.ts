import { Module } from '@nestjs/common';
import { BearerModule } from '../bearer/bearer.module.js';
import { CustomerModule } from '../customer/customer.module.js';
import { IdentityModule } from '../identity/identity.module.js';
import { OperatorModule } from '../operator/operator.module.js';
import { SessionModule } from '../session/session.module.js';
import { CustomerDataController } from './customer-data.controller.js';
import { NamedCustomers } from './named-customers.js';
import { OrganizationUserController } from './organization-user.controller.js';
import { OrganizationUsers } from './organization-users.js';

/** The users of organizations, by the organizations' own ids (protocol §5.7). */
@Module({
  imports: [BearerModule, CustomerModule, IdentityModule, OperatorModule, SessionModule],
  controllers: [CustomerDataController, OrganizationUserController],
  providers: [NamedCustomers, OrganizationUsers],
  exports: [NamedCustomers, OrganizationUsers],
})
export class OrganizationUserModule {}
