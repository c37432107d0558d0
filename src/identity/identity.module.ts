import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { OperatorModule } from '../operator/operator.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { BrowserCreation } from './browser-creation.js';
import { BrowserLink, KnownBrowser, LinkAncestor } from './browser-link.entity.js';
import { BrowserRecognition } from './browser-recognition.js';
import { BrowserVisits } from './browser-visits.js';
import { CustomerBrowsers } from './customer-browsers.js';
import { CustomerCreation } from './customer-creation.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import { CustomerDevices } from './customer-devices.js';
import { CustomerErasure } from './customer-erasure.js';
import { CustomerExports } from './customer-exports.js';
import { CustomerIdentity, UnfinishedErasure } from './customer-identity.entity.js';
import { CustomerRecords } from './customer-records.js';
import { CustomerSessions } from './customer-sessions.js';
import { EndedLinks } from './ended-links.js';
import { ForgetController } from './forget.controller.js';
import { Forget } from './forget.js';
import { Identities } from './identities.js';
import { IdentityController } from './identity.controller.js';
import { IdentityCookies } from './identity-cookies.js';
import { IdleBrowsers } from './idle-browsers.js';
import { IdleCustomers } from './idle-customers.js';
import { LastTokenDays } from './last-token-days.js';
import { LinkLifetime } from './link-lifetime.js';
import { NewCustomers } from './new-customers.js';
import { Remember } from './remember.js';
import { UserSignIns } from './sign-in.js';

const ENTITIES = [CustomerIdentity, KnownBrowser, BrowserLink, LinkAncestor, UnfinishedErasure];

const EXPORTED = [
  BrowserCreation,
  CustomerBrowsers,
  CustomerCreation,
  CustomerDataParticipants,
  CustomerDevices,
  CustomerErasure,
  CustomerExports,
  CustomerRecords,
  CustomerSessions,
  EndedLinks,
  Identities,
  IdentityCookies,
  IdleBrowsers,
  IdleCustomers,
  LastTokenDays,
  Remember,
  UserSignIns,
];

/** Customers, and the browsers that lead to them. */
@Module({
  imports: [TypeOrmModule.forFeature(ENTITIES), AccessTokenModule, OperatorModule, RegistryModule],
  controllers: [IdentityController, ForgetController],
  providers: [...EXPORTED, BrowserRecognition, BrowserVisits, Forget, LinkLifetime, NewCustomers],
  exports: EXPORTED,
})
export class IdentityModule {}
