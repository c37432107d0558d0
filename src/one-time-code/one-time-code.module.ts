import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { CodeAudit } from './code-audit.js';
import { OneTimeCode } from './one-time-code.entity.js';
import { OneTimeCodes } from './one-time-codes.js';
import { RefreshFamily } from './refresh-family.entity.js';
import { RefreshToken } from './refresh-token.entity.js';
import { RefreshTokens } from './refresh-tokens.js';

/** What can be redeemed once: authorization codes, transfer tokens, refresh tokens. */
@Module({
  imports: [TypeOrmModule.forFeature([OneTimeCode, RefreshFamily, RefreshToken]), AccessTokenModule],
  providers: [OneTimeCodes, CodeAudit, RefreshTokens],
  exports: [OneTimeCodes, RefreshTokens],
})
export class OneTimeCodeModule {}
