import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CustomerEntity } from './customer.entity.js';
import { CustomerKey } from './customer-key.entity.js';
import { CustomerPurge } from './customer-purge.js';
import { Customers } from './customers.js';
import { OrganizationCustomers } from './organization-customers.js';

/** The rows of customers, and the keys that lead to them. */
@Module({
  imports: [TypeOrmModule.forFeature([CustomerEntity, CustomerKey])],
  providers: [CustomerPurge, Customers, OrganizationCustomers],
  exports: [CustomerPurge, Customers, OrganizationCustomers],
})
export class CustomerModule {}
