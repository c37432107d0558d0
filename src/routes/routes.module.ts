import { Global, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { BearerModule } from '../bearer/bearer.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { CookieRoutes } from './customer-cors.js';
import { Limits } from './limits.js';
import { RouteChecks } from './route-checks.js';

/**
 * What the decorators of routes need, and the limits of an extension. The module is global, so that a module with
 * controllers does not import it.
 */
@Global()
@Module({
  imports: [DiscoveryModule, BearerModule, RegistryModule],
  providers: [CookieRoutes, Limits, RouteChecks],
  exports: [BearerModule, RegistryModule, CookieRoutes, Limits],
})
export class RoutesModule {}
