import { Module } from '@nestjs/common';
import { CustomerModule } from '../customer/customer.module.js';
import { FeedModule } from '../feed/feed.module.js';
import { CallersModule } from '../http/callers/callers.module.js';
import { RedemptionModule } from '../redemption/redemption.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { SessionModule } from '../session/session.module.js';
import { BrowserReplacement } from './browser-replacement.js';
import { CustomerService } from './customer.service.js';
import { CustomerCreation } from './customer-creation.js';
import { CustomerDataController } from './customer-data.controller.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import { CustomerErasure } from './customer-erasure.js';
import { CustomerRecords } from './customer-records.js';
import { EndSessionsController } from './end-sessions.controller.js';
import { EndSessionsService } from './end-sessions.service.js';
import { ForgetController } from './forget.controller.js';
import { ForgetService } from './forget.service.js';
import { IdentityCookies } from './identity-cookies.js';
import { NamedCustomers } from './named-customers.js';
import { Purge } from './purge.js';
import { RememberService } from './remember.service.js';
import { OrganizationUsers } from './users/organization-users.js';
import { UserSignIns } from './users/user-sign-ins.js';

const EXPORTED = [
  CustomerCreation,
  CustomerDataParticipants,
  CustomerErasure,
  CustomerRecords,
  EndSessionsService,
  CustomerService,
  IdentityCookies,
  NamedCustomers,
  OrganizationUsers,
  Purge,
  RememberService,
];

/**
 * Customers, their browsers, and the users of organizations. A browser becomes a customer's in these ways (protocol
 * §5.3 and §5.6):
 *
 * - An unrecognized browser visits, and is created with a customer: `customer.service.ts`.
 * - A known browser visits another organization or group, and gets a further customer: `customer.service.ts`.
 * - A browser redeems a transfer token with `remember`: `remember.service.ts` creates a new browser.
 * - A user signs in: `users/user-sign-ins.ts` creates a new browser.
 * - A new browser gets copies of sessions of the earlier browser: `browser-replacement.ts`.
 */
@Module({
  imports: [CustomerModule, CallersModule, FeedModule, RedemptionModule, RegistryModule, SessionModule],
  controllers: [CustomerDataController, EndSessionsController, ForgetController],
  providers: [...EXPORTED, BrowserReplacement, ForgetService, UserSignIns],
  exports: EXPORTED,
})
export class IdentityModule {}
