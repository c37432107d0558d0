import type { DynamicModule, Type } from '@nestjs/common';
import { MODULE_METADATA } from '@nestjs/common/constants.js';
import { textsIn } from './secret-search.js';
import { type Method, replaceMethod, thenRestore } from './shared-patch.js';

/** A provider, and the object that takes its place: `[SmsGateway, { send: async () => undefined }]`. */
export type ReplacedProvider = readonly [provider: Type | (abstract new () => unknown), replacement: object];

type Import = Type | DynamicModule;

/**
 * Does work, which creates the application, while modules provide other objects than they declare.
 *
 * @throws Error if none of the modules, and of those that they import, declares a provider
 */
export async function withReplacedProviders<Result>(
  modules: Import[],
  replaced: readonly ReplacedProvider[],
  work: () => Promise<Result>,
): Promise<Result> {
  return thenRestore(
    replaced.flatMap((each) => replace(modulesIn(modules), each)),
    work,
  );
}

function replace(modules: Set<Type>, [provide, useValue]: ReplacedProvider): (() => void)[] {
  const providing = [...modules].filter((module) => providersOf(module).includes(provide));
  if (providing.length === 0)
    throw new Error(`replace: no module declares the provider ${provide.name}; name its module in \`modules\``);
  return providing.map((module) => {
    const before = providersOf(module);
    const after = before.map((each) => (each === provide ? { provide, useValue } : each));
    Reflect.defineMetadata(MODULE_METADATA.PROVIDERS, after, module);
    return () => Reflect.defineMetadata(MODULE_METADATA.PROVIDERS, before, module);
  });
}

const providersOf = (module: Type): unknown[] => Reflect.getMetadata(MODULE_METADATA.PROVIDERS, module) ?? [];

/** The classes of modules, and of those that they import. */
function modulesIn(imports: Import[], found = new Set<Type>()): Set<Type> {
  for (const each of imports) {
    const module = 'module' in each ? each.module : each;
    if (typeof module !== 'function' || found.has(module)) continue;
    found.add(module);
    modulesIn(Reflect.getMetadata(MODULE_METADATA.IMPORTS, module) ?? [], found);
  }
  return found;
}

/**
 * Does work, and returns the names of the methods of replaced providers that the service called meanwhile, and the texts
 * in their parameters.
 *
 * @param respond responds to a call; if omitted, the method itself
 */
export async function recordCalls<Result>(
  replaced: readonly ReplacedProvider[],
  work: () => Promise<Result>,
  respond?: Method,
): Promise<{ result: Result; calls: string[]; texts: string[] }> {
  const calls = new Set<string>();
  const texts: string[] = [];
  const restores = replaced.flatMap(([{ name: provider }, replacement]) =>
    methodsOf(replacement).map((name) =>
      replaceMethod(replacement, name, (method) => (...parameters) => {
        calls.add(`${provider}.${name}`);
        texts.push(...textsIn(parameters));
        return (respond ?? method)(...parameters);
      }),
    ),
  );
  return { result: await thenRestore(restores, work), calls: [...calls], texts };
}

/** Does work while each promise that a method of a replaced provider returns is rejected. */
export async function whileAsyncMethodsFail<Result>(
  replaced: readonly ReplacedProvider[],
  fail: () => Promise<never>,
  work: () => Promise<Result>,
): Promise<Result> {
  const restores = replaced.flatMap(([, replacement]) =>
    methodsOf(replacement).map((name) =>
      replaceMethod(replacement, name, (method) => (...parameters) => {
        const result = method(...parameters);
        return result instanceof Promise ? result.then(fail) : result;
      }),
    ),
  );
  return thenRestore(restores, work);
}

/** The names of the methods of an object, also those of its class. */
function methodsOf(target: object): string[] {
  const names = new Set<string>();
  for (let each = target; each && each !== Object.prototype; each = Object.getPrototypeOf(each))
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(each)))
      if (typeof value === 'function' && name !== 'constructor') names.add(name);
  return [...names];
}
