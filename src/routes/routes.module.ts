import { Global, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { BearerModule } from '../bearer/bearer.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { RouteChecks } from './route-checks.js';

/** Global, so that a module with controllers does not import it, and neither the registry nor the guards. */
@Global()
@Module({
  imports: [DiscoveryModule, BearerModule, RegistryModule],
  providers: [RouteChecks],
  exports: [BearerModule, RegistryModule],
})
export class RoutesModule {}
