import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { CodeAudit } from './code-audit.js';
import { CodeLookup } from './code-lookup.js';
import { CodeReuse } from './code-reuse.js';
import { OneTimeCode } from './one-time-code.entity.js';
import { OneTimeCodes } from './one-time-codes.js';

/** Codes that can be redeemed once: authorization codes and transfer tokens. */
@Module({
  imports: [TypeOrmModule.forFeature([OneTimeCode]), AccessTokenModule],
  providers: [OneTimeCodes, CodeAudit, CodeLookup, CodeReuse],
  exports: [OneTimeCodes, CodeLookup],
})
export class OneTimeCodeModule {}
