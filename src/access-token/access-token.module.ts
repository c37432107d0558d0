import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokens } from './access-tokens.js';
import { Denylist } from './denylist.js';
import { MigrationState } from './migration-state.js';
import { RecordedValue } from './recorded-value.entity.js';
import { RecordedValues } from './recorded-values.js';
import { Revocation } from './revocation.entity.js';
import { SigningKeys } from './signing-keys.js';
import { TokenInspection } from './token-inspection.js';

/** Access tokens: their format, the signing keys and revocation. */
@Module({
  imports: [TypeOrmModule.forFeature([Revocation, RecordedValue])],
  providers: [AccessTokens, Denylist, MigrationState, RecordedValues, SigningKeys, TokenInspection],
  exports: [AccessTokens, Denylist, MigrationState, SigningKeys, TokenInspection],
})
export class AccessTokenModule {}
