import type { Extension } from '@customer-authorization/service';
import { GrantDecorator, type GrantMetadata } from '@customer-authorization/service/testing-host';
import type { DynamicModule, Type } from '@nestjs/common';
import { MODULE_METADATA } from '@nestjs/common/constants.js';
import type { ReplacedProvider } from './replaced-providers.js';

type Import = Type | DynamicModule;
type Kind = 'providers' | 'controllers';

/** The classes that a module declares, by its decorator or as a dynamic module. */
function declaredIn(imported: Import, kind: Kind): unknown[] {
  const { module, ...dynamic } = 'module' in imported ? imported : { module: imported };
  return [
    ...(Reflect.getMetadata(MODULE_METADATA[kind === 'providers' ? 'PROVIDERS' : 'CONTROLLERS'], module) ?? []),
    ...(dynamic[kind] ?? []),
  ];
}

const declaredBy = ({ modules = [] }: Extension, kind: Kind): unknown[] =>
  modules.flatMap((each) => declaredIn(each, kind));

/** The declarations of the grants of an extension. */
export function grantsOf(extension: Extension): GrantMetadata[] {
  return declaredBy(extension, 'providers').flatMap((provider) => {
    const declared = typeof provider === 'function' && Reflect.getMetadata(GrantDecorator.KEY, provider as Type);
    return declared ? [declared as GrantMetadata] : [];
  });
}

/** The controllers of an extension. */
export const controllersOf = (extension: Extension): Set<unknown> => new Set(declaredBy(extension, 'controllers'));

/**
 * The modules of an extension, which provide other objects than they declare.
 *
 * @throws Error if none of the modules declares one of the providers
 */
export function modulesWith(modules: readonly Import[], replaced: readonly ReplacedProvider[]): Import[] {
  const provides = (imported: Import, token: unknown) =>
    declaredIn(imported, 'providers').some(
      (each) => each === token || (each as { provide?: unknown }).provide === token,
    );
  for (const [token] of replaced)
    if (!modules.some((each) => provides(each, token)))
      throw new Error(`replace: the extension does not provide ${token.name}`);
  return modules.map((each) => {
    const own = replaced.filter(([token]) => provides(each, token));
    if (own.length === 0) return each;
    const { module, ...dynamic } = 'module' in each ? each : { module: each };
    // the last provider of a token takes precedence
    const providers = [...(dynamic.providers ?? []), ...own.map(([provide, useValue]) => ({ provide, useValue }))];
    return { module, ...dynamic, providers };
  });
}
