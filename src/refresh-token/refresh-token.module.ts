import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { RefreshFamily } from './refresh-family.entity.js';
import { RefreshToken } from './refresh-token.entity.js';
import { RefreshTokenLookup } from './refresh-token-lookup.js';
import { RefreshTokens } from './refresh-tokens.js';

/** Refresh tokens of agents: their families, their rotation and the detection of reuse. */
@Module({
  imports: [TypeOrmModule.forFeature([RefreshFamily, RefreshToken]), AccessTokenModule],
  providers: [RefreshTokens, RefreshTokenLookup],
  exports: [RefreshTokens, RefreshTokenLookup],
})
export class RefreshTokenModule {}
