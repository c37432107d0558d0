import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { OperatorModule } from '../operator/operator.module.js';
import { BrowserCustomers } from './browser-customers.js';
import { BrowserLink } from './browser-link.entity.js';
import { BrowserLinkParticipant } from './browser-link-participant.js';
import { BrowserOrigin } from './browser-origin.entity.js';
import { CustomerCreation } from './customer-creation.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import { CustomerIdentity } from './customer-identity.entity.js';
import { CustomerRecords } from './customer-records.js';
import { Identities } from './identities.js';
import { IdentityController } from './identity.controller.js';
import { IdentityCookies } from './identity-cookies.js';
import { IdleBrowsers } from './idle-browsers.js';
import { KnownBrowsers } from './known-browsers.js';
import { LinkAncestor } from './link-ancestor.entity.js';
import { LinkCredential } from './link-credential.entity.js';
import { LinkedBrowsers } from './linked-browsers.js';

const ENTITIES = [CustomerIdentity, BrowserLink, LinkCredential, LinkAncestor, BrowserOrigin];

/** Customer identities, and the cookies that recognise a browser. */
@Module({
  imports: [TypeOrmModule.forFeature(ENTITIES), AccessTokenModule, OperatorModule],
  controllers: [IdentityController],
  providers: [
    Identities,
    KnownBrowsers,
    BrowserCustomers,
    LinkedBrowsers,
    CustomerCreation,
    IdentityCookies,
    IdleBrowsers,
    CustomerRecords,
    CustomerDataParticipants,
    BrowserLinkParticipant,
  ],
  exports: [
    CustomerCreation,
    CustomerRecords,
    Identities,
    IdentityCookies,
    IdleBrowsers,
    LinkedBrowsers,
    CustomerDataParticipants,
  ],
})
export class IdentityModule {}
