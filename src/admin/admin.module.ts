import { Module } from '@nestjs/common';
import { OperatorModule } from '../operator/operator.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { REGISTRY_RESOURCES } from '../registry/resources/registry-resources.js';
import { ClientSecretController } from './client-secret.controller.js';
import { entryController } from './entry.controller.js';

@Module({
  imports: [RegistryModule, OperatorModule],
  controllers: [...REGISTRY_RESOURCES.map(entryController), ClientSecretController],
})
export class AdminModule {}
