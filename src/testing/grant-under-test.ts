import type { Type } from '@nestjs/common';
import { type DeclaredGrant, GrantMetadata } from '../token/grant.js';
import { GrantIndex } from '../token/grant-index.js';
import type { GrantKit } from './grant-kit.js';
import { kitRegistry } from './kit-registry.js';
import type { TestService, TestServiceOptions } from './test-service.js';

/** @throws Error when the class is no grant */
export function grantMetadataOf(grant: Type): DeclaredGrant {
  const declared = Reflect.getMetadata(GrantMetadata.KEY, grant) as DeclaredGrant | undefined;
  if (!declared) throw new Error(`${grant.name}: no grant; decorate the class with @GrantType`);
  return declared;
}

/** @throws Error when no module has the grant: every rule would fail, and none say why */
export function assertProvided(grant: Type, service: TestService): void {
  const grants = service.application.get(GrantIndex).all();
  if (grants.some(({ handler }) => handler instanceof grant)) return;
  throw new Error(`${grant.name}: no module provides it; name its module in \`modules\`, or in src/app.module.ts`);
}

/** How the service is started that the grant is tried in. */
export function serviceOptionsOf({ name, optIn }: DeclaredGrant, kit: GrantKit): TestServiceOptions {
  const { settings = {}, environment = {}, valid: _valid, caller: _caller, singleUse: _use, ...extension } = kit;
  const of = (entry?: object) => (entry ? { [name]: entry } : {});
  const listed = optIn ? [name, 'cookie'] : undefined;
  const registry = kitRegistry({ client: of(settings.client), organization: of(settings.organization), listed });
  return { ...extension, registry, environment: { ...environment, AUTH_URL: 'https://auth.example' } };
}
