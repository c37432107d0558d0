import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokens, TokenInspection } from './access-tokens.js';
import { CallerNetworks } from './caller-networks.js';
import { Denylist } from './denylist.js';
import { FeedEntries } from './feed/feed-entries.js';
import { FeedHistory, RevocationFeedState } from './feed/feed-state.js';
import { RaisedGenerations } from './feed/raised-generations.js';
import { RevocationLimit } from './feed/revocation-limit.js';
import { RevocationPages } from './feed/revocation-pages.js';
import { RevocationPublisher } from './feed/revocation-publisher.js';
import { RecordedValue, RecordedValues } from './recorded-values.js';
import { Revocation } from './revocation.entity.js';
import { SigningKeys } from './signing-keys.js';

const EXPORTED = [
  AccessTokens,
  CallerNetworks,
  Denylist,
  FeedHistory,
  RaisedGenerations,
  RecordedValues,
  RevocationLimit,
  RevocationPages,
  RevocationPublisher,
  SigningKeys,
  TokenInspection,
];

@Module({
  imports: [TypeOrmModule.forFeature([Revocation, RecordedValue, RevocationFeedState])],
  providers: [...EXPORTED, FeedEntries],
  exports: EXPORTED,
})
export class AccessTokenModule {}
