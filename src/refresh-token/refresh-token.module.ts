import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { SessionModule } from '../session/session.module.js';
import { RefreshFamily } from './refresh-family.entity.js';
import { RefreshTokens } from './refresh-tokens.js';

/** Refresh tokens of agents: their families, their rotation and the detection of reuse. */
@Module({
  imports: [TypeOrmModule.forFeature([RefreshFamily]), SessionModule],
  providers: [RefreshTokens],
  exports: [RefreshTokens],
})
export class RefreshTokenModule {}
