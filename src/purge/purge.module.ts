import { Module } from '@nestjs/common';
import { IdentityModule } from '../identity/identity.module.js';
import { RefreshTokenModule } from '../refresh-token/refresh-token.module.js';
import { Purge } from './purge.js';

@Module({ imports: [IdentityModule, RefreshTokenModule], providers: [Purge], exports: [Purge] })
export class PurgeModule {}
