import type { Type } from '@nestjs/common';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { GrantSubject, grantMetadataOf } from './grant-subject.js';
import type { GrantKit, RouteKit } from './kit.js';
import { RouteSubject } from './route-subject.js';
import type { Rule } from './rule.js';
import { grantRules, routeRules } from './rules/all.js';
import type { Subject } from './subject.js';

/** Generous, because the machine may run other work at the same time. */
const RULE_TIMEOUT_MS = 120_000;

/**
 * Registers one vitest test for each rule that the author of a grant can break. The tests send HTTP requests to the
 * real service, which runs on a database of its own.
 *
 * @throws Error if the class is not a grant
 */
export function describeGrant(grant: Type, kit: GrantKit): void {
  const declared = grantMetadataOf(grant);
  describeRules(`the grant ${declared.name}`, () => GrantSubject.open(grant, kit), grantRules(declared, kit));
}

/**
 * As `describeGrant`, for a route of an extension on the public port.
 *
 * @param name the method and the path as in the OpenAPI document: `POST /v2/customer/devices/{id}/approve`
 */
export function describeRoute(name: `${'GET' | 'POST' | 'DELETE'} /${string}`, kit: RouteKit): void {
  describeRules(`the route ${name}`, () => RouteSubject.open(name, kit), routeRules(name, kit));
}

function describeRules<Tested extends Subject>(
  title: string,
  open: () => Promise<Tested>,
  rules: readonly Rule<Tested>[],
): void {
  describe(title, () => {
    let subject: Tested | undefined;
    beforeAll(async () => {
      subject = await open();
      await subject.prepare();
    }, RULE_TIMEOUT_MS);
    afterAll(() => subject?.close());
    for (const rule of rules) it(rule.title, async () => void (await (subject as Tested).check(rule)), RULE_TIMEOUT_MS);
  });
}
