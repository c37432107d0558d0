import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { BearerModule } from '../bearer/bearer.module.js';
import { IdentityModule } from '../identity/identity.module.js';
import { OperatorModule } from '../operator/operator.module.js';
import { CustomerDataController } from './customer-data.controller.js';
import { NamedCustomers } from './named-customers.js';
import { OrganizationUserController } from './organization-user.controller.js';
import { OrganizationUser } from './organization-user.entity.js';
import { OrganizationUserData } from './organization-user-data.js';
import { OrganizationUsers } from './organization-users.js';

/** The users of organizations, by the organizations' own ids (protocol §5.7). */
@Module({
  imports: [
    AccessTokenModule,
    BearerModule,
    IdentityModule,
    OperatorModule,
    TypeOrmModule.forFeature([OrganizationUser]),
  ],
  controllers: [CustomerDataController, OrganizationUserController],
  providers: [NamedCustomers, OrganizationUsers, OrganizationUserData],
  exports: [NamedCustomers, OrganizationUsers],
})
export class OrganizationUserModule {}
