import { type DynamicModule, Module, type Provider, type Type } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import type { CustomerDataParticipant } from '../identity/customer-data-participant.js';
import type { NewCustomerCheck } from '../identity/extension-hooks.js';
import type { MigrationClass } from '../migrations/migrations.js';
import type { Configuration } from '../platform/configuration/configuration.js';
import type { LimitDeclarations } from '../platform/configuration/rate-limit-rule.js';
import { GrantStoresModule } from './stores/grant-stores.module.js';

/** What another team adds to the service, as the service takes it. `defineExtension` makes it. */
export interface Extension {
  /** NestJS modules of other packages. `defineExtension` adds one with the classes of the extension. */
  modules?: (Type | DynamicModule)[];
  /** Migrations of the team's tables. They run after the service's, in the order of the timestamps in their names. */
  migrations?: MigrationClass[];
  /** Classes that erase and export rows about customers in the team's own tables. */
  participants?: Type<CustomerDataParticipant>[];
  /**
   * The name of the variable with the file of the key by which `CustomersByKey` hashes keys: at least 32 characters.
   * With another key, each key leads to a new customer. With the embedded database, the first start generates the file.
   */
  customerKeyFile?: string;
  /**
   * Runs before the grant `cookie` or `anonymous` creates a customer, and refuses it by throwing an `OAuthError`, for
   * example because a captcha is missing. Its work delays the response.
   */
  beforeNewCustomer?: NewCustomerCheck;
  /**
   * Names the registry file if REGISTRY_FILE is not set. It is called once before the start, and may create the file.
   */
  registryFile?: (configuration: Configuration) => string | undefined;
  /**
   * Limits that `Limits` counts: `{ qr_guess: '30/300' }` allows 30 in 300 seconds. RATE_LIMIT can change them. The
   * names are in snake_case.
   */
  limits?: LimitDeclarations;
}

/** The classes of an extension, and the rest of what it adds. */
export interface ExtensionParts extends Extension {
  /** Classes with `@GrantType`. */
  grants?: Type[];
  /** Controllers of routes, such as one that sends a code. */
  controllers?: Type[];
  /** What grants and controllers inject of the team's own, such as the gateway of another company. */
  providers?: Provider[];
  /** Entities of the team's own tables, whose repositories the classes inject. A migration creates each table. */
  entities?: Type[];
}

/** The module of an extension. Each extension has metadata of its own. */
@Module({})
class ExtensionModule {}

/**
 * Declares what a package adds to the service. The file that EXTENSION names has the result as its default export:
 * `export default defineExtension({ grants: [LottoGrant] });`
 */
export function defineExtension(parts: ExtensionParts): Extension {
  const { grants = [], controllers = [], providers = [], entities = [], modules = [], ...rest } = parts;
  const own: DynamicModule = {
    module: ExtensionModule,
    imports: [GrantStoresModule, TypeOrmModule.forFeature(entities)],
    controllers,
    providers: [...providers, ...grants, ...(rest.participants ?? [])],
  };
  return { ...rest, modules: [own, ...modules] };
}
