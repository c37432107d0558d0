import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Agents } from './agents.js';
import { DeletedEntries } from './deleted-entries.js';
import { ENTRY_KINDS } from './entries/entry-kinds.js';
import { GrantSettingsClasses } from './grant-settings-classes.js';
import { Registry } from './registry.js';
import { RegistryRevision } from './registry-revision.entity.js';

const ENTITIES = ENTRY_KINDS.map(({ entity }) => entity);

const EXPORTED = [Agents, DeletedEntries, GrantSettingsClasses, Registry];

/** The registry as requests read it. `OperatorRegistryModule` changes it. */
@Module({
  imports: [TypeOrmModule.forFeature([...ENTITIES, RegistryRevision])],
  providers: EXPORTED,
  exports: EXPORTED,
})
export class RegistryModule {}
