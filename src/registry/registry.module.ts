import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Agent } from './agent.entity.js';
import { Agents } from './agents.js';
import { AppliedRegistryFile } from './applied-registry-file.entity.js';
import { ClientApplication } from './client-application.entity.js';
import { ClientAuthentication } from './client-authentication.js';
import { FollowedRegistryFile } from './file/followed-registry-file.js';
import { RegistryFile } from './file/registry-file.js';
import { GrantCatalogue } from './grant-catalogue.js';
import { Organization } from './organization.entity.js';
import { Registry } from './registry.js';
import { RegistryEditor } from './registry-editor.js';
import { RegistryRevision } from './registry-revision.entity.js';
import { ResourceServer } from './resource-server.entity.js';

/** Who may ask for tokens, and for whom: organizations, client applications, agents, resource servers. */
@Module({
  imports: [
    TypeOrmModule.forFeature([
      Organization,
      ClientApplication,
      Agent,
      ResourceServer,
      RegistryRevision,
      AppliedRegistryFile,
    ]),
  ],
  providers: [
    Registry,
    RegistryFile,
    FollowedRegistryFile,
    RegistryEditor,
    GrantCatalogue,
    Agents,
    ClientAuthentication,
  ],
  exports: [Registry, RegistryFile, RegistryEditor, GrantCatalogue, Agents, ClientAuthentication],
})
export class RegistryModule {}
