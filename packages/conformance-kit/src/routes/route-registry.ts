import type { Type } from '@nestjs/common';
import { MODULE_METADATA } from '@nestjs/common/constants.js';
import type { Extension } from 'customer-authorization-service';
import { declaredProperties, GrantDecorator, type GrantMetadata } from 'customer-authorization-service/testing-host';
import { kitRegistry } from '../kit-registry.js';

type Modules = Pick<Extension, 'modules'>;

/** The registry of the kit, whose clients may use all grants of the extension. */
export function routeRegistry({
  settings = {},
  ...kit
}: Modules & { settings?: { client?: object; organization?: object } }) {
  const grants = grantsOf(kit);
  /** Each grant gets the fields that its class declares. */
  const ofGrants = (entry: object = {}) =>
    Object.fromEntries(
      grants.flatMap(({ name, settings: declared }) => {
        const fields = declared ? declaredProperties(declared) : [];
        const own = Object.entries(entry).filter(([field]) => fields.includes(field));
        return own.length > 0 ? [[name, Object.fromEntries(own)]] : [];
      }),
    );
  const isOptIn = grants.some(({ optIn }) => optIn);
  return kitRegistry({
    client: ofGrants(settings.client),
    organization: ofGrants(settings.organization),
    grantTypes: isOptIn ? [...grants.map(({ name }) => name), 'cookie'] : undefined,
  });
}

/** The grants that the modules of the extension provide. */
export function grantsOf({ modules = [] }: Modules): GrantMetadata[] {
  const providers = modules.flatMap((each): unknown[] => {
    const { module, providers = [] } = 'module' in each ? each : { module: each };
    return [...(Reflect.getMetadata(MODULE_METADATA.PROVIDERS, module) ?? []), ...providers];
  });
  return providers.flatMap((provider) => {
    const declared = typeof provider === 'function' && Reflect.getMetadata(GrantDecorator.KEY, provider as Type);
    return declared ? [declared as GrantMetadata] : [];
  });
}
