import { Module } from '@nestjs/common';
import { CallersModule } from '../../http/callers/callers.module.js';
import { SessionModule } from '../../session/session.module.js';
import { TokenModule } from '../../token/token.module.js';
import { IntrospectionController } from './introspection.controller.js';
import { RevocationFeedController } from './revocation-feed.controller.js';
import { RevocationFeed } from './revocation-feed.js';
import { TokenExplanation } from './token-explanation.js';

/** Introspection (RFC 7662), revocation (RFC 7009) and the revocation feed, for services inside the cluster. */
@Module({
  imports: [CallersModule, SessionModule, TokenModule],
  controllers: [IntrospectionController, RevocationFeedController],
  providers: [TokenExplanation, RevocationFeed],
})
export class IntrospectionModule {}
