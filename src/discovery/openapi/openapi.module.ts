import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { TokenModule } from '../../token/token.module.js';
import { OpenApiController } from './openapi.controller.js';
import { OpenApiDocument } from './openapi-document.js';

@Module({
  imports: [DiscoveryModule, TokenModule],
  controllers: [OpenApiController],
  providers: [OpenApiDocument],
})
export class OpenApiModule {}
