import { Module } from '@nestjs/common';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { OperatorModule } from '../operator/operator.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { REGISTRY_RESOURCES } from '../registry/resources/registry-resources.js';
import { resourceServerResource } from '../registry/resources/resource-server.resource.js';
import { ClientSecretController } from './client-secret.controller.js';
import { ClientTokens } from './client-tokens.js';
import { entryController } from './entry.controller.js';
import { entryListController } from './entry-list.controller.js';
import { entryResponsesOf } from './entry-responses.js';

/** The order of the paths in the OpenAPI document: resource servers are last. */
const RESOURCES = [...REGISTRY_RESOURCES.filter((each) => each !== resourceServerResource), resourceServerResource].map(
  (resource) => ({ resource, responses: entryResponsesOf(resource) }),
);

/** The admin API on the management port, by which operators change the registry while the service runs. */
@Module({
  imports: [RegistryModule, AccessTokenModule, OperatorModule],
  controllers: [
    ...RESOURCES.map(({ resource, responses }) => entryListController(resource, responses)),
    ...RESOURCES.map(({ resource, responses }) => entryController(resource, responses)),
    ClientSecretController,
  ],
  providers: [ClientTokens],
})
export class AdminModule {}
