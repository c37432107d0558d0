import { Module, type OnModuleInit } from '@nestjs/common';
import { OperatorModule } from '../operator/operator.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { RegistryTransactions } from '../registry/registry-transactions.js';
import { clientResource } from '../registry/resources/client.resource.js';
import { REGISTRY_RESOURCES } from '../registry/resources/registry-resources.js';
import { Endings } from '../session/endings.js';
import { SessionModule } from '../session/session.module.js';
import { ClientSecretController } from './client-secret.controller.js';
import { entryController } from './entry.controller.js';

@Module({
  imports: [RegistryModule, SessionModule, OperatorModule],
  controllers: [...REGISTRY_RESOURCES.map(entryController), ClientSecretController],
})
export class AdminModule implements OnModuleInit {
  constructor(
    private readonly transactions: RegistryTransactions,
    private readonly endings: Endings,
  ) {}

  onModuleInit(): void {
    this.transactions.registerRevoker(clientResource, async (clientIds, manager) => {
      for (const clientId of clientIds) await this.endings.endClient(clientId, manager);
    });
  }
}
