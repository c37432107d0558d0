import { Module } from '@nestjs/common';
import { AccessTokens } from './access-tokens.js';
import { SigningKeys } from './signing-keys.js';

@Module({
  providers: [AccessTokens, SigningKeys],
  exports: [AccessTokens, SigningKeys],
})
export class AccessTokenModule {}
