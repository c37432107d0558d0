import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { OperatorModule } from '../operator/operator.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { BrowserLink, KnownBrowser, LinkAncestor } from './browser-link.entity.js';
import { BrowserPurge } from './browser-purge.js';
import { BrowserRecognition } from './browser-recognition.js';
import { CustomerBrowsers } from './customer-browsers.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import { CustomerDevices } from './customer-devices.js';
import { CustomerErasure } from './customer-erasure.js';
import { CustomerIdentity, UnfinishedErasure } from './customer-identity.entity.js';
import { CustomerRecords } from './customer-records.js';
import { CustomerSessions } from './customer-sessions.js';
import { ForgetController } from './forget.controller.js';
import { Forget } from './forget.js';
import { Identities } from './identities.js';
import { IdentityController } from './identity.controller.js';
import { IdentityCookies } from './identity-cookies.js';
import { IdleCustomers } from './idle-customers.js';
import { LinkLifetime } from './link-lifetime.js';
import { NewCustomers } from './new-customers.js';
import { Remember } from './remember.js';

const ENTITIES = [CustomerIdentity, KnownBrowser, BrowserLink, LinkAncestor, UnfinishedErasure];

const PROVIDERS = [
  BrowserPurge,
  BrowserRecognition,
  CustomerBrowsers,
  CustomerDataParticipants,
  CustomerDevices,
  CustomerErasure,
  CustomerRecords,
  CustomerSessions,
  Forget,
  Identities,
  IdentityCookies,
  IdleCustomers,
  LinkLifetime,
  NewCustomers,
  Remember,
];

/**
 * Customers, and the browsers that lead to them. A browser becomes a customer's in these ways (protocol §5.3 and §5.6):
 *
 * - An unrecognized browser visits, and is created with a customer: `identities.ts`, `new-customers.ts`.
 * - A known browser visits another organization or group, and gets a further customer: `identities.ts`.
 * - A browser redeems a transfer token with `remember`: `remember.ts`. A new browser leads to the customer by a transfer.
 * - A user signs in: `new-browsers.ts`. A new browser leads to the user's customer. With `link`, the customer of the
 *   earlier browser becomes a new user's: `organization-user/organization-users.ts`.
 * - A new browser gets copies of links of the earlier browser: `new-browsers.ts`.
 *
 * `links.ts` says when a link leads to its customer, and lets it end.
 */
@Module({
  imports: [TypeOrmModule.forFeature(ENTITIES), AccessTokenModule, OperatorModule, RegistryModule],
  controllers: [IdentityController, ForgetController],
  providers: PROVIDERS,
  exports: PROVIDERS,
})
export class IdentityModule {}
