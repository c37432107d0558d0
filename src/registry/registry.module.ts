import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Agents } from './agents.js';
import { DeletedEntries } from './deleted-entries.js';
import { ENTRY_KINDS } from './entries/entry-kinds.js';
import { RegistryFile } from './file/registry-file.js';
import { GrantSettingsClasses } from './grant-settings-classes.js';
import { Registry } from './registry.js';
import { RegistryEditor } from './registry-editor.js';
import { RegistryLists } from './registry-lists.js';
import { RegistryRevision } from './registry-revision.entity.js';
import { RegistryTransactions } from './registry-transactions.js';

const ENTITIES = ENTRY_KINDS.map(({ entity }) => entity);

const EXPORTED = [
  Agents,
  DeletedEntries,
  GrantSettingsClasses,
  Registry,
  RegistryEditor,
  RegistryFile,
  RegistryLists,
  RegistryTransactions,
];

@Module({
  imports: [TypeOrmModule.forFeature([...ENTITIES, RegistryRevision])],
  providers: EXPORTED,
  exports: EXPORTED,
})
export class RegistryModule {}
