import { Module } from '@nestjs/common';
import { CallersModule } from '../../http/callers/callers.module.js';
import { RegistryModule } from '../../registry/registry.module.js';
import { AgentController } from './agent.controller.js';
import { ClientController } from './client.controller.js';
import { ClientSecretController } from './client-secret.controller.js';
import { OrganizationController } from './organization.controller.js';
import { ResourceServerController } from './resource-server.controller.js';

@Module({
  imports: [RegistryModule, CallersModule],
  controllers: [
    OrganizationController,
    ClientController,
    ResourceServerController,
    AgentController,
    ClientSecretController,
  ],
})
export class AdminModule {}
