import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { OperatorModule } from '../operator/operator.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { BrowserCustomers } from './browser-customers.js';
import { BrowserDeletion } from './browser-deletion.js';
import { BrowserLink } from './browser-link.entity.js';
import { BrowserLinkParticipant } from './browser-link-participant.js';
import { BrowserOrigin } from './browser-origin.entity.js';
import { CustomerBrowsers } from './customer-browsers.js';
import { CustomerCreation } from './customer-creation.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import { CustomerIdentity } from './customer-identity.entity.js';
import { CustomerLinks } from './customer-links.js';
import { CustomerRecords } from './customer-records.js';
import { EndedLinks } from './ended-links.js';
import { ForgetController } from './forget.controller.js';
import { ForgottenBrowsers } from './forgotten-browsers.js';
import { Identities } from './identities.js';
import { IdentityController } from './identity.controller.js';
import { IdentityCookies } from './identity-cookies.js';
import { IdleBrowsers } from './idle-browsers.js';
import { IdleRule } from './idle-rule.js';
import { KnownBrowsers } from './known-browsers.js';
import { LinkAncestor } from './link-ancestor.entity.js';
import { LinkCredential } from './link-credential.entity.js';
import { LinkedBrowsers } from './linked-browsers.js';

const ENTITIES = [CustomerIdentity, BrowserLink, LinkCredential, LinkAncestor, BrowserOrigin];

const EXPORTED = [
  CustomerCreation,
  CustomerDataParticipants,
  CustomerLinks,
  CustomerRecords,
  EndedLinks,
  Identities,
  IdentityCookies,
  IdleBrowsers,
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
    BrowserDeletion,
    BrowserLinkParticipant,
    ForgottenBrowsers,
    IdleRule,
    KnownBrowsers,
  ],
  exports: EXPORTED,
})
export class IdentityModule {}
