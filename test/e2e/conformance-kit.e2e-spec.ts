import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { applicableRules } from '../../src/testing/applicable-rules.js';
import { GrantTestContext } from '../../src/testing/grant-test-context.js';
import { grantMetadataOf } from '../../src/testing/grant-under-test.js';
import type { BrokenCase, Interception } from '../support/broken-grants/broken-case.js';
import { BROKEN_GRANTS } from '../support/broken-grants/broken-grants.js';
import { BROKEN_SERVICES } from '../support/broken-grants/broken-services.js';
import { grantThat, sound } from '../support/broken-grants/ticket.grant.js';

/** Time limit of the kit for a response in these tests. */
const RESPONSE_TIMEOUT_MS = 2_000;
const valid = () => ({ ticket: '123456' });

/** Changes the requests and the responses of the kit. */
function interceptingFetch(interception: Interception, fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init = {}) => {
    const url = new URL(String(input));
    const sent = {
      path: url.pathname,
      headers: { ...(init.headers as Record<string, string>) },
      body: String(init.body),
    };
    if (init.method === 'POST') interception.request?.(sent);
    url.pathname = decodeURI(sent.path);
    const changed =
      interception.request && init.method === 'POST' ? { ...init, headers: sent.headers, body: sent.body } : init;
    const response = await fetch(url, changed);
    if (!interception.response) return response;
    const { status, headers } = response;
    const intercepted = { path: url.pathname, status, headers: new Headers(headers), text: await response.text() };
    interception.response(intercepted);
    return new Response(intercepted.text, { status: intercepted.status, headers: intercepted.headers });
  };
}

/** Returns the failure of the rule with the given title, for a broken grant. */
async function failureOf({
  grant,
  rule,
  interception,
  breakService,
  restore,
  description: _description,
  failure: _failure,
  ...more
}: BrokenCase) {
  const kit = { valid, ...more };
  const rules = applicableRules(grantMetadataOf(grant), kit).filter(({ title }) => title === rule);
  expect(rules).toHaveLength(1);
  const context = await GrantTestContext.open(grant, kit, RESPONSE_TIMEOUT_MS);
  const { fetch } = globalThis;
  try {
    breakService?.(context.environment.service);
    if (interception) globalThis.fetch = interceptingFetch(interception, fetch);
    return await rules[0]?.check(context).then(
      () => 'the rule passed',
      (error: Error) => error.message,
    );
  } finally {
    globalThis.fetch = fetch;
    restore?.();
    await context.close();
  }
}

describe('the conformance kit detects a grant that', { timeout: 60_000 }, () => {
  const cases = [...BROKEN_GRANTS, ...BROKEN_SERVICES];
  beforeEach(() => void vi.spyOn(console, 'log').mockImplementation(() => undefined)); // One grant writes there.
  afterEach(() => vi.restoreAllMocks());

  it.each(cases)('$description', async (broken) => {
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
