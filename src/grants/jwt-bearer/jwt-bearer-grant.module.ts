import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { IdentityModule } from '../../public/grant.js';
import { Assertions } from './assertions.js';
import { IssuerKeys } from './issuer-keys.js';
import { JwtBearerGrant } from './jwt-bearer.grant.js';
import { OrganizationUser } from './organization-user.entity.js';
import { OrganizationUserParticipant } from './organization-user-participant.js';
import { OrganizationUsers } from './organization-users.js';
import { UsedAssertion } from './used-assertion.entity.js';
import { UsedAssertions } from './used-assertions.js';

@Module({
  imports: [IdentityModule, TypeOrmModule.forFeature([OrganizationUser, UsedAssertion])],
  providers: [JwtBearerGrant, Assertions, IssuerKeys, OrganizationUsers, OrganizationUserParticipant, UsedAssertions],
})
export class JwtBearerGrantModule {}
