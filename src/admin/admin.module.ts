import { Module } from '@nestjs/common';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { OperatorModule } from '../operator/operator.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { ClientSecretController } from './client-secret.controller.js';
import { EntriesController } from './entries.controller.js';

/** What an operator may do to the registry while the service runs. */
@Module({
  imports: [RegistryModule, AccessTokenModule, OperatorModule],
  controllers: [EntriesController, ClientSecretController],
})
export class AdminModule {}
