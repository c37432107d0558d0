import { Module } from '@nestjs/common';
import { AccessTokens } from './access-tokens.js';
import { JwksController } from './jwks.controller.js';
import { SigningKeys } from './signing-keys.js';

/** The access token: its format, its keys, its validity. */
@Module({
  controllers: [JwksController],
  providers: [AccessTokens, SigningKeys],
  exports: [AccessTokens],
})
export class AccessTokenModule {}
