import { Module } from '@nestjs/common';
import { CallersModule } from '../../http/callers/callers.module.js';
import { IdentityModule } from '../../identity/identity.module.js';
import { CustomerController } from './customer.controller.js';

/** What the operator does with customers. */
@Module({
  imports: [CallersModule, IdentityModule],
  controllers: [CustomerController],
})
export class OperatorCustomersModule {}
