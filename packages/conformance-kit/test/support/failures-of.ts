import type { Type } from '@nestjs/common';
import { GrantSubject, grantMetadataOf } from '../../src/grant-subject.js';
import type { GrantKit, RouteKit } from '../../src/kit.js';
import { RouteSubject } from '../../src/route-subject.js';
import type { Rule } from '../../src/rule.js';
import { grantRules, routeRules } from '../../src/rules/all.js';
import type { Subject } from '../../src/subject.js';

/** The failures of rules, by their titles. */
export type Failures = Record<string, string>;

/** The failures of the rules that a grant breaks. With `rule`, only of rules with this text in their titles. */
export async function failuresOf(grant: Type, kit: GrantKit, rule = ''): Promise<Failures> {
  return failuresIn(await GrantSubject.open(grant, kit), grantRules(grantMetadataOf(grant), kit), rule);
}

/** As `failuresOf`, for a route. */
export async function failuresOfRoute(name: string, kit: RouteKit, rule = ''): Promise<Failures> {
  return failuresIn(await RouteSubject.open(name, kit), routeRules(name, kit), rule);
}

async function failuresIn<Tested extends Subject>(subject: Tested, rules: Rule<Tested>[], text: string) {
  const failures: Failures = {};
  try {
    await subject.prepare().catch((error: Error) => {
      failures.prepare = error.message;
    });
    for (const rule of failures.prepare ? [] : rules.filter(({ title }) => title.includes(text)))
      await subject.check(rule).catch((error: Error) => {
        failures[rule.title] = error.message;
      });
    return failures;
  } finally {
    await subject.close();
  }
}
