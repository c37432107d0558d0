import { Module } from '@nestjs/common';
import { CallersModule } from '../../http/callers/callers.module.js';
import { SessionModule } from '../../session/session.module.js';
import { TokenModule } from '../../token/token.module.js';
import { EventsController } from './events.controller.js';
import { EventReader, RevocationReader } from './feed-reader.js';
import { IntrospectionController } from './introspection.controller.js';
import { RevocationFeedController } from './revocation-feed.controller.js';
import { TokenExplanation } from './token-explanation.js';

/** Introspection (RFC 7662), revocation (RFC 7009), the revocation feed and the events of customers, for services inside the cluster. */
@Module({
  imports: [CallersModule, SessionModule, TokenModule],
  controllers: [EventsController, IntrospectionController, RevocationFeedController],
  providers: [EventReader, RevocationReader, TokenExplanation],
})
export class IntrospectionModule {}
