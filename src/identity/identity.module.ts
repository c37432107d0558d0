import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CustomerIdentity } from './customer-identity.entity.js';
import { Identities } from './identities.js';
import { IdentityCookies } from './identity-cookies.js';

/** Who a customer is, and the cookies by which a browser shows it. */
@Module({
  imports: [TypeOrmModule.forFeature([CustomerIdentity])],
  providers: [Identities, IdentityCookies],
  exports: [Identities, IdentityCookies],
})
export class IdentityModule {}
