import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { IdentityModule, OrganizationUserModule } from '../../public/grant.js';
import { Assertions } from './assertions.js';
import { IssuerKeys } from './issuer-keys.js';
import { JwtBearerGrant } from './jwt-bearer.grant.js';
import { UsedAssertion } from './used-assertion.entity.js';
import { UsedAssertions } from './used-assertions.js';

@Module({
  imports: [IdentityModule, OrganizationUserModule, TypeOrmModule.forFeature([UsedAssertion])],
  providers: [JwtBearerGrant, Assertions, IssuerKeys, UsedAssertions],
})
export class JwtBearerGrantModule {}
