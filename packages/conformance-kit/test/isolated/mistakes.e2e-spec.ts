import { describe, expect, it } from 'vitest';
import { failuresOf, failuresOfRoute } from '../support/failures-of.js';
import { MISTAKES } from '../support/mistakes.js';

describe('the conformance kit finds the mistake of an author that', () => {
  it.each(MISTAKES)('$mistake', async ({ rule, failure, grant, route }) => {
    const ofGrant = grant ? await failuresOf(grant.grant, grant, rule) : {};
    const ofRoute = route ? await failuresOfRoute(route.route, route, rule) : {};
    const [found = 'the rules passed'] = Object.values({ ...ofGrant, ...ofRoute });
    expect(found).toMatch(failure);
  });
});
