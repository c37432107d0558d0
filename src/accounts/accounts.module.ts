import { Module } from '@nestjs/common';
import { MetadataController } from './metadata.controller.js';

/** What callers ask about tokens, and about this service. */
@Module({ controllers: [MetadataController] })
export class AccountsModule {}
