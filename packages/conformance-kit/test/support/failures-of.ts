import type { Type } from '@nestjs/common';
import { applicableRules } from '../../src/applicable-rules.js';
import { fuzzOptions } from '../../src/fuzz/fuzz-options.js';
import type { GrantKit } from '../../src/grant-kit.js';
import { GrantTestContext } from '../../src/grant-test-context.js';
import { grantMetadataOf } from '../../src/grant-under-test.js';
import { applicableRouteRules } from '../../src/routes/applicable-route-rules.js';
import type { RouteKit } from '../../src/routes/route-kit.js';
import { RouteTestContext } from '../../src/routes/route-test-context.js';
import { type Interception, interceptingFetch } from './broken-grants/broken-case.js';

/** Returns the failures of all rules that a grant violates, by their titles. Fuzzing is short, because it finds none of these mistakes. */
export async function failuresOf(grant: Type, kit: GrantKit): Promise<Map<string, string>> {
  const context = await GrantTestContext.open(grant, kit);
  const failures = new Map<string, string>();
  const { requests } = fuzzOptions;
  fuzzOptions.requests = 50;
  try {
    for (const rule of applicableRules(grantMetadataOf(grant), kit))
      await context.check(rule).catch((error: Error) => failures.set(rule.title, error.message));
  } finally {
    fuzzOptions.requests = requests;
    await context.close();
  }
  return failures;
}

/** Returns the failures of all rules that a route violates, by their titles. */
export async function failuresOfRoute(
  name: string,
  kit: RouteKit,
  interception?: Interception,
): Promise<Record<string, string>> {
  const context = await RouteTestContext.open(name, kit);
  const failures: Record<string, string> = {};
  const { fetch } = globalThis;
  if (interception) globalThis.fetch = interceptingFetch(interception, fetch);
  try {
    for (const rule of applicableRouteRules(kit))
      await context.check(rule).catch((error: Error) => {
        failures[rule.title] = error.message;
      });
    return failures;
  } finally {
    globalThis.fetch = fetch;
    await context.close();
  }
}
