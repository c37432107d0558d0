import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { IdentityModule } from '../identity/identity.module.js';
import { OneTimeCode } from './one-time-code.entity.js';
import { OneTimeCodes } from './one-time-codes.js';

@Module({
  imports: [TypeOrmModule.forFeature([OneTimeCode]), AccessTokenModule, IdentityModule],
  providers: [OneTimeCodes],
  exports: [OneTimeCodes],
})
export class OneTimeCodeModule {}
