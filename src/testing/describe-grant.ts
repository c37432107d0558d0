import type { Type } from '@nestjs/common';
import { afterAll, beforeAll, describe, it } from 'vitest';
import type { GrantKit } from './kit.js';
import { rulesOf } from './rules-of.js';
import { Trial } from './trial.js';
import { declarationOf } from './tried-grant.js';

/** Milliseconds that a rule may take at most; fuzzing takes most, and the cores may have much else to do. */
const LONGEST = 120_000;

/**
 * Registers, in a file of vitest's, one test for each rule of the house that applies to what the grant's decorator
 * declares. They ask the real service, over HTTP, on a database of their own.
 *
 * @throws Error when the class is no grant
 */
export function describeGrant(grant: Type, kit: GrantKit): void {
  const declared = declarationOf(grant);
  describe(`the grant ${declared.name}, by the rules of the house,`, () => {
    let trial: Trial;
    beforeAll(async () => {
      trial = await Trial.open(grant, kit);
    }, LONGEST);
    afterAll(() => trial?.close());
    for (const { title, check } of rulesOf(declared, kit)) it(title, () => check(trial), LONGEST);
  });
}
