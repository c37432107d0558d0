import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Agents } from './agents.js';
import { AppliedRegistryFile } from './applied-registry-file.entity.js';
import { RegistryChange } from './changes/registry-change.entity.js';
import { ClientAuthentication } from './client-authentication.js';
import { ClientSecrets } from './client-secrets.js';
import { FileInForce } from './file/file-in-force.js';
import { FollowedRegistryFile } from './file/followed-registry-file.js';
import { RegistryFile } from './file/registry-file.js';
import { RegistryFileWriter } from './file/registry-file-writer.js';
import { GrantSettingsClasses } from './grant-settings-classes.js';
import { Registry } from './registry.js';
import { RegistryEditor } from './registry-editor.js';
import { RegistryLists } from './registry-lists.js';
import { RegistryRevision } from './registry-revision.entity.js';
import { RegistryTransactions } from './registry-transactions.js';
import { REGISTRY_RESOURCES } from './resources/registry-resources.js';
import { TokenRevokers } from './token-revokers.js';

/** The registry: organizations, clients, agents and resource servers. */
@Module({
  imports: [
    TypeOrmModule.forFeature([
      ...REGISTRY_RESOURCES.map(({ entity }) => entity),
      RegistryRevision,
      RegistryChange,
      AppliedRegistryFile,
    ]),
  ],
  providers: [
    Registry,
    RegistryFile,
    RegistryFileWriter,
    FileInForce,
    FollowedRegistryFile,
    RegistryEditor,
    RegistryLists,
    RegistryTransactions,
    ClientSecrets,
    TokenRevokers,
    GrantSettingsClasses,
    Agents,
    ClientAuthentication,
  ],
  exports: [
    Registry,
    RegistryFile,
    RegistryEditor,
    RegistryLists,
    ClientSecrets,
    TokenRevokers,
    GrantSettingsClasses,
    Agents,
    ClientAuthentication,
  ],
})
export class RegistryModule {}
