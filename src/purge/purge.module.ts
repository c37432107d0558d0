import { Module } from '@nestjs/common';
import { IdentityModule } from '../identity/identity.module.js';
import { RefreshTokenModule } from '../refresh-token/refresh-token.module.js';
import { Purge } from './purge.js';

/** Deletes expired rows, so that the tables do not grow without bound. */
@Module({ imports: [IdentityModule, RefreshTokenModule], providers: [Purge], exports: [Purge] })
export class PurgeModule {}
