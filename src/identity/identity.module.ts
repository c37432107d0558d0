import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { OperatorModule } from '../operator/operator.module.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import { CustomerIdentity } from './customer-identity.entity.js';
import { CustomerRecords } from './customer-records.js';
import { Identities } from './identities.js';
import { IdentityController } from './identity.controller.js';
import { IdentityCookies } from './identity-cookies.js';
import { IdleBrowsers } from './idle-browsers.js';
import { KnownBrowsers } from './known-browsers.js';

/** Customer identities, and the cookies that recognise a browser. */
@Module({
  imports: [TypeOrmModule.forFeature([CustomerIdentity]), AccessTokenModule, OperatorModule],
  controllers: [IdentityController],
  providers: [Identities, KnownBrowsers, IdentityCookies, IdleBrowsers, CustomerRecords, CustomerDataParticipants],
  exports: [Identities, IdentityCookies, IdleBrowsers, CustomerDataParticipants],
})
export class IdentityModule {}
