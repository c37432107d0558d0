import type { Type } from '@nestjs/common';
import { GrantDecorator, type GrantMetadata, GrantRegistry } from 'customer-authorization-service/testing-host';
import type { GrantKit } from './grant-kit.js';
import { kitRegistry } from './kit-registry.js';
import { extensionOf, type TestService, type TestServiceOptions } from './test-service.js';

/** @throws Error if the class is not a grant */
export function grantMetadataOf(grant: Type): GrantMetadata {
  const declared = Reflect.getMetadata(GrantDecorator.KEY, grant) as GrantMetadata | undefined;
  if (!declared) throw new Error(`${grant.name}: no grant; decorate the class with @GrantType`);
  return declared;
}

/** @throws Error if no module provides the grant, because otherwise every rule would fail without this reason */
export function assertProvided(grant: Type, service: TestService): void {
  const grants = service.application.get(GrantRegistry).all();
  if (grants.some(({ handler }) => handler instanceof grant)) return;
  throw new Error(`${grant.name}: no module provides it; name its module in \`modules\`, or in src/app.module.ts`);
}

/** The options of the service in which the grant is tested. */
export function serviceOptionsOf({ name, optIn }: GrantMetadata, kit: GrantKit): TestServiceOptions {
  const { settings = {}, environment = {} } = kit;
  const of = (entry?: object) => (entry ? { [name]: entry } : {});
  const listed = optIn ? [name, 'cookie'] : undefined;
  const registry = kitRegistry({
    client: of(settings.client),
    organization: of(settings.organization),
    grantTypes: listed,
  });
  return { ...extensionOf(kit), registry, environment: { ...environment, AUTH_URL: 'https://auth.example' } };
}
