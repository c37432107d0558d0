import { Module } from '@nestjs/common';
import { CustomerModule } from '../customer/customer.module.js';
import { CallersModule } from '../http/callers/callers.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { SessionModule } from '../session/session.module.js';
import { BrowserService } from './browser.service.js';
import { CustomerService } from './customer.service.js';
import { CustomerCreation } from './customer-creation.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import { CustomerErasure } from './customer-erasure.js';
import { CustomerRecords } from './customer-records.js';
import { EndSessionsService } from './end-sessions.service.js';
import { ForgetController } from './forget.controller.js';
import { IdentityCookies } from './identity-cookies.js';

const PROVIDERS = [
  BrowserService,
  CustomerCreation,
  CustomerDataParticipants,
  CustomerErasure,
  CustomerRecords,
  EndSessionsService,
  CustomerService,
  IdentityCookies,
];

/**
 * Customers and their browsers. A browser becomes a customer's in these ways (protocol §5.3 and §5.6):
 *
 * - An unrecognized browser visits, and is created with a customer: `customer.service.ts`.
 * - A known browser visits another organization or group, and gets a further customer: `customer.service.ts`.
 * - A browser redeems a transfer token with `remember`: `browser.service.ts` creates a new browser.
 * - A user signs in: `identity/users/user-sign-ins.ts` creates a new browser.
 * - A new browser gets copies of sessions of the earlier browser: `browser.service.ts`.
 */
@Module({
  imports: [CustomerModule, CallersModule, RegistryModule, SessionModule],
  controllers: [ForgetController],
  providers: PROVIDERS,
  exports: PROVIDERS,
})
export class IdentityModule {}
