import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { applicableRules } from '../../src/testing/applicable-rules.js';
import { GrantTestContext } from '../../src/testing/grant-test-context.js';
import { grantMetadataOf } from '../../src/testing/grant-under-test.js';
import type { BrokenCase, Lie } from '../support/broken-grants/broken-case.js';
import { BROKEN_SERVICES } from '../support/broken-grants/broken-services.js';
import { CARELESS } from '../support/broken-grants/careless-grants.js';
import { grantThat, sound } from '../support/broken-grants/ticket.grant.js';

/** Time limit of the kit for a response in these tests. */
const RESPONSE_TIMEOUT_MS = 2_000;
const valid = () => ({ ticket: '123456' });

/** Changes the requests and the responses of the kit. */
function tamperingFetch({ request, answer }: Lie, fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init = {}) => {
    const url = new URL(String(input));
    const sent = {
      path: url.pathname,
      headers: { ...(init.headers as Record<string, string>) },
      body: String(init.body),
    };
    if (init.method === 'POST') request?.(sent);
    url.pathname = decodeURI(sent.path);
    const changed = request && init.method === 'POST' ? { ...init, headers: sent.headers, body: sent.body } : init;
    const response = await fetch(url, changed);
    if (!answer) return response;
    const { status, headers } = response;
    const given = { path: url.pathname, status, headers: new Headers(headers), text: await response.text() };
    answer(given);
    return new Response(given.text, { status: given.status, headers: given.headers });
  };
}

/** Returns the failure of the rule with the given title, for a broken grant. */
async function failureOf({ grant, rule, lie, damage, after, what: _what, failure: _failure, ...more }: BrokenCase) {
  const kit = { valid, ...more };
  const rules = applicableRules(grantMetadataOf(grant), kit).filter(({ title }) => title === rule);
  expect(rules).toHaveLength(1);
  const context = await GrantTestContext.open(grant, kit, RESPONSE_TIMEOUT_MS);
  const { fetch } = globalThis;
  try {
    damage?.(context.environment.service);
    if (lie) globalThis.fetch = tamperingFetch(lie, fetch);
    return await rules[0]?.check(context).then(
      () => 'kept',
      (error: Error) => error.message,
    );
  } finally {
    globalThis.fetch = fetch;
    after?.();
    await context.close();
  }
}

describe('the conformance kit detects a grant that', { timeout: 60_000 }, () => {
  const cases = [...CARELESS, ...BROKEN_SERVICES];
  beforeEach(() => void vi.spyOn(console, 'log').mockImplementation(() => undefined)); // One grant writes there.
  afterEach(() => vi.restoreAllMocks());

  it.each(cases)('$what', async (broken) => {
    expect(await failureOf(broken)).toMatch(broken.failure);
  });

  it('breaks any of its rules', () => {
    const declarations = [{}, { form: true, groups: true, optIn: true, settings: Object, agentScope: 'tickets:any' }];
    const titles = declarations.flatMap((options) =>
      [false, true].flatMap((singleUse) =>
        applicableRules(grantMetadataOf(grantThat(sound, options).grant), { valid, singleUse }).map(
          ({ title }) => title,
        ),
      ),
    );
    const broken = new Set(cases.map(({ rule }) => rule));
    expect([...new Set(titles)].filter((title) => !broken.has(title))).toEqual([]);
  });
});

describe('the conformance kit', () => {
  it('requires a class with the decorator', () => {
    class NoGrant {}
    expect(() => grantMetadataOf(NoGrant)).toThrow('NoGrant: no grant; decorate the class with @GrantType');
  });

  it('requires the module of the grant', async () => {
    await expect(GrantTestContext.open(grantThat(sound).grant, { valid })).rejects.toThrow(
      'TicketGrant: no module provides it; name its module in `modules`, or in src/app.module.ts',
    );
  });
});
