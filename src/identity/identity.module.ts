import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { OperatorModule } from '../operator/operator.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { BrowserCustomerErasure } from './browser-customer-erasure.js';
import { BrowserCustomers } from './browser-customers.js';
import { BrowserDeletion } from './browser-deletion.js';
import { BrowserLink } from './browser-link.entity.js';
import { BrowserLinkParticipant } from './browser-link-participant.js';
import { BrowserOrigin } from './browser-origin.entity.js';
import { CustomerBrowsers } from './customer-browsers.js';
import { CustomerCreation } from './customer-creation.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import { CustomerExports } from './customer-exports.js';
import { CustomerIdentity } from './customer-identity.entity.js';
import { CustomerLinks } from './customer-links.js';
import { CustomerRecords } from './customer-records.js';
import { CustomerSessions } from './customer-sessions.js';
import { EndedLinks } from './ended-links.js';
import { ForgetController } from './forget.controller.js';
import { ForgottenBrowsers } from './forgotten-browsers.js';
import { Identities } from './identities.js';
import { IdentityController } from './identity.controller.js';
import { IdentityCookies } from './identity-cookies.js';
import { IdleBrowsers } from './idle-browsers.js';
import { IdleCustomers } from './idle-customers.js';
import { IdleRule } from './idle-rule.js';
import { KnownBrowsers } from './known-browsers.js';
import { LinkAncestor } from './link-ancestor.entity.js';
import { LinkCredential } from './link-credential.entity.js';
import { LinkedBrowsers } from './linked-browsers.js';
import { Visits } from './visits.js';

const ENTITIES = [CustomerIdentity, BrowserLink, LinkCredential, LinkAncestor, BrowserOrigin];

const EXPORTED = [
  CustomerCreation,
  CustomerDataParticipants,
  CustomerLinks,
  CustomerRecords,
  CustomerSessions,
  EndedLinks,
  Identities,
  IdentityCookies,
  IdleBrowsers,
  IdleCustomers,
  LinkedBrowsers,
];

/** Customer identities, and the cookies that recognise a browser. */
@Module({
  imports: [TypeOrmModule.forFeature(ENTITIES), AccessTokenModule, OperatorModule, RegistryModule],
  controllers: [IdentityController, ForgetController],
  providers: [
    ...EXPORTED,
    BrowserCustomers,
    CustomerBrowsers,
    CustomerExports,
    BrowserCustomerErasure,
    BrowserDeletion,
    BrowserLinkParticipant,
    ForgottenBrowsers,
    IdleRule,
    KnownBrowsers,
    Visits,
  ],
  exports: EXPORTED,
})
export class IdentityModule {}
