import type { Type } from '@nestjs/common';
import { textsIn } from './secret-search.js';
import { type Method, replaceMethod, thenRestore } from './shared-patch.js';

/** A provider, and the object that takes its place: `[SmsGateway, { send: async () => undefined }]`. */
export type ReplacedProvider = readonly [provider: Type | (abstract new () => unknown), replacement: object];

/** The calls of replaced providers during some work: the names of the methods, and the texts in their parameters. */
export interface RecordedCalls<Result> {
  result: Result;
  calls: string[];
  texts: string[];
}

/**
 * Does work, and records the calls of replaced providers.
 *
 * @param fail takes the place of each asynchronous method
 */
export async function recordCalls<Result>(
  replaced: readonly ReplacedProvider[],
  work: () => Promise<Result>,
  fail?: () => Promise<never>,
): Promise<RecordedCalls<Result>> {
  const calls: string[] = [];
  const texts: string[] = [];
  const restores = replaced.flatMap(([provider, replacement]) =>
    methodsOf(replacement).map((name) =>
      replaceMethod(replacement, name, (method) => (...parameters) => {
        calls.push(`${provider.name}.${name}`);
        texts.push(...textsIn(parameters));
        if (fail && isAsync(Reflect.get(provider.prototype, name))) return fail();
        const result = method(...parameters);
        return fail && result instanceof Promise ? result.then(fail) : result;
      }),
    ),
  );
  return { result: await thenRestore(restores, work), calls, texts };
}

const isAsync = (method: unknown): boolean => (method as Method | undefined)?.constructor.name === 'AsyncFunction';

/** The names of the methods of an object, also those of its class. */
function methodsOf(target: object): string[] {
  const names = new Set<string>();
  for (let each = target; each && each !== Object.prototype; each = Object.getPrototypeOf(each))
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(each)))
      if (typeof value === 'function' && name !== 'constructor') names.add(name);
  return [...names];
}
