import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { failureOf, type Opened, open } from '../support/failures-of.js';
import { makeMistake } from '../support/mistake.js';
import { MISTAKES } from '../support/mistakes.js';

describe.each(MISTAKES)('the conformance kit finds that $subject', ({ tested, rows }) => {
  let opened: Opened | undefined;
  beforeAll(async () => {
    makeMistake(rows[0]?.[0]);
    opened = await open(tested());
  });
  afterEach(() => makeMistake());
  afterAll(() => opened?.subject.close());

  it.each(rows)('%s (rule: %s)', async (mistake, rule, failure, omitted) => {
    makeMistake(mistake);
    expect(await failureOf(opened as Opened, rule, omitted)).toMatch(failure);
  });
});
