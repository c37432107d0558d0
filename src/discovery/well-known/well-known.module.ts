import { Module } from '@nestjs/common';
import { AccessTokenModule } from '../../access-token/access-token.module.js';
import { JwksController } from './jwks.controller.js';
import { ClusterMetadataController, ServerMetadataController } from './server-metadata.controller.js';

/** The discovery documents for client libraries and resource servers (RFC 8615). */
@Module({
  imports: [AccessTokenModule],
  controllers: [JwksController, ServerMetadataController, ClusterMetadataController],
})
export class WellKnownModule {}
