import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CustomerEvent } from './customer-event.entity.js';
import { CustomerEvents } from './customer-events.js';
import { Ended } from './ended.entity.js';
import { EventPages } from './event-pages.js';
import { FeedEntries } from './feed-entries.js';
import { FeedPublisher } from './feed-publisher.js';
import { FeedStore } from './feed-store.js';
import { RecordedEndings } from './recorded-endings.js';
import { RevocationFeedState } from './revocation-feed-state.entity.js';
import { RevocationLimit } from './revocation-limit.js';
import { RevocationPages } from './revocation-pages.js';

const EXPORTED = [CustomerEvents, EventPages, FeedPublisher, RecordedEndings, RevocationLimit, RevocationPages];

/**
 * What other services learn: which tokens have ended, and what became of customers. The transaction of a change writes a
 * row, `feed-publisher.ts` gives it a position, and the pages are read by position.
 */
@Module({
  imports: [TypeOrmModule.forFeature([CustomerEvent, Ended, RevocationFeedState])],
  providers: [...EXPORTED, FeedEntries, FeedStore],
  exports: EXPORTED,
})
export class FeedModule {}
