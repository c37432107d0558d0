import { Module } from '@nestjs/common';
import { IdentityModule } from '../identity/identity.module.js';
import { Purge } from './purge.js';

/** Keeps the tables from growing without bound. */
@Module({ imports: [IdentityModule], providers: [Purge], exports: [Purge] })
export class PurgeModule {}
