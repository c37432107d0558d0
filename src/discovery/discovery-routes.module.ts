import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { FeedModule } from '../feed/feed.module.js';
import { CallersModule } from '../http/callers/callers.module.js';
import { RedemptionModule } from '../redemption/redemption.module.js';
import { SessionModule } from '../session/session.module.js';
import { TokenModule } from '../token/token.module.js';
import { EventsController } from './introspection/events.controller.js';
import { EventReader, RevocationReader } from './introspection/feed-reader.js';
import { IntrospectionController } from './introspection/introspection.controller.js';
import { RevocationFeedController } from './introspection/revocation-feed.controller.js';
import { TokenExplanation } from './introspection/token-explanation.js';
import { OpenApiController } from './openapi/openapi.controller.js';
import { OpenApiDocument } from './openapi/openapi-document.js';
import { JwksController } from './well-known/jwks.controller.js';
import { ClusterMetadataController, ServerMetadataController } from './well-known/server-metadata.controller.js';

/** What client libraries and services in the cluster ask. */
@Module({
  imports: [
    AccessTokenModule,
    CallersModule,
    DiscoveryModule,
    FeedModule,
    RedemptionModule,
    SessionModule,
    TokenModule,
  ],
  controllers: [
    EventsController,
    IntrospectionController,
    RevocationFeedController,
    JwksController,
    ServerMetadataController,
    ClusterMetadataController,
    OpenApiController,
  ],
  providers: [EventReader, RevocationReader, TokenExplanation, OpenApiDocument],
})
export class DiscoveryRoutesModule {}
