import { Module } from '@nestjs/common';
import { RegistryModule } from '../../registry/registry.module.js';
import { SessionModule } from '../../session/session.module.js';
import { IdentityModule } from '../identity.module.js';
import { Purge } from './purge.js';

@Module({ imports: [IdentityModule, RegistryModule, SessionModule], providers: [Purge], exports: [Purge] })
export class PurgeModule {}
