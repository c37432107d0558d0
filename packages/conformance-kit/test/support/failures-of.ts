import type { Type } from '@nestjs/common';
import { applicableRules } from '../../src/describe-grant.js';
import type { GrantKit } from '../../src/grant-kit.js';
import { GrantTestContext, grantMetadataOf } from '../../src/grant-test-context.js';
import { applicableRouteRules } from '../../src/routes/describe-route.js';
import type { RouteKit } from '../../src/routes/route-kit.js';
import { RouteTestContext } from '../../src/routes/route-test-context.js';
import { fuzzOptions } from '../../src/rules/fuzzing.js';
import type { RuleFor, TestContext } from '../../src/test-context.js';
import { type Interception, interceptingFetch } from './broken-grants/broken-case.js';

/** The failures of rules, by their titles. */
export type Failures = Record<string, string>;

/** Returns the failures of all rules that a grant violates. Fuzzing is short, because it finds none of these mistakes. */
export async function failuresOf(grant: Type, kit: GrantKit): Promise<Failures> {
  const context = await GrantTestContext.open(grant, kit);
  const { requests } = fuzzOptions;
  fuzzOptions.requests = 50;
  return failuresIn(context, applicableRules(grantMetadataOf(grant), kit)).finally(() => {
    fuzzOptions.requests = requests;
  });
}

/** Returns the failures of all rules that a route violates. With `rule`, only of rules with this text in their title. */
export async function failuresOfRoute(
  name: string,
  kit: RouteKit,
  { rule = '', interception }: { rule?: string; interception?: Interception | undefined } = {},
): Promise<Failures> {
  const rules = applicableRouteRules(kit).filter(({ title }) => title.includes(rule));
  return failuresIn(await RouteTestContext.open(name, kit), rules, interception);
}

/** Checks rules, and closes the context. */
export async function failuresIn<Context extends TestContext>(
  context: Context,
  rules: RuleFor<Context>[],
  interception?: Interception,
): Promise<Failures> {
  const failures: Failures = {};
  const { fetch } = globalThis;
  if (interception) globalThis.fetch = interceptingFetch(interception, fetch);
  try {
    for (const rule of rules)
      await context.check(rule).catch((error: Error) => {
        failures[rule.title] = error.message;
      });
    return failures;
  } finally {
    globalThis.fetch = fetch;
    await context.close();
  }
}
