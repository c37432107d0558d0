import type { Extension } from '@customer-authorization/service';
import { GrantDecorator, type GrantMetadata } from '@customer-authorization/service/testing-host';
import type { DynamicModule, Type } from '@nestjs/common';
import { MODULE_METADATA } from '@nestjs/common/constants.js';

/** The classes that the modules of an extension declare, by their decorators or as dynamic modules. */
function declaredBy({ modules = [] }: Extension, kind: 'providers' | 'controllers'): unknown[] {
  const key = MODULE_METADATA[kind === 'providers' ? 'PROVIDERS' : 'CONTROLLERS'];
  return modules.flatMap((each) => {
    const { module, [kind]: dynamic = [] }: DynamicModule = 'module' in each ? each : { module: each };
    return [...(Reflect.getMetadata(key, module) ?? []), ...dynamic];
  });
}

/** The declarations of the grants of an extension. */
export function grantsOf(extension: Extension): GrantMetadata[] {
  return declaredBy(extension, 'providers').flatMap((provider) => {
    const declared = typeof provider === 'function' && Reflect.getMetadata(GrantDecorator.KEY, provider as Type);
    return declared ? [declared as GrantMetadata] : [];
  });
}

/** The controllers of an extension. */
export const controllersOf = (extension: Extension): Set<unknown> => new Set(declaredBy(extension, 'controllers'));
