import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokens } from './access-tokens.js';
import { Denylist } from './denylist.js';
import { JwksController } from './jwks.controller.js';
import { Revocation } from './revocation.entity.js';
import { SigningKeys } from './signing-keys.js';

/** The access token: its format, its keys, its end. */
@Module({
  imports: [TypeOrmModule.forFeature([Revocation])],
  controllers: [JwksController],
  providers: [AccessTokens, Denylist, SigningKeys],
  exports: [AccessTokens, Denylist, SigningKeys],
})
export class AccessTokenModule {}
