import { Global, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { RegistryModule } from '../../registry/registry.module.js';
import { CallersModule } from '../callers/callers.module.js';
import { RouteChecks } from './route-checks.js';

/** Global, so that a module with controllers does not import it, and neither the registry nor the guards. */
@Global()
@Module({
  imports: [DiscoveryModule, CallersModule, RegistryModule],
  providers: [RouteChecks],
  exports: [CallersModule, RegistryModule],
})
export class RoutesModule {}
