import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { applicableRules } from '../../src/describe-grant.js';
import type { GrantKit } from '../../src/grant-kit.js';
import { GrantTestContext, grantMetadataOf, type Rule } from '../../src/grant-test-context.js';
import type { BrokenCase } from '../support/broken-grants/broken-case.js';
import { BROKEN_GRANTS } from '../support/broken-grants/broken-grants.js';
import { BROKEN_PROOFS } from '../support/broken-grants/broken-proofs.js';
import { BROKEN_SERVICES } from '../support/broken-grants/broken-services.js';
import { passGrant } from '../support/broken-grants/pass.grant.js';
import { pollingGrant } from '../support/broken-grants/polling.grant.js';
import { grantThat, sound } from '../support/broken-grants/ticket.grant.js';
import { failuresIn, failuresOf } from '../support/failures-of.js';

const valid = () => ({ ticket: '123456' });

/** As `valid` of a test that creates no proof of its own in its third call. */
function firstTwoAreValid(): GrantKit['valid'] {
  let count = 0;
  return () => ({ ticket: count++ < 2 ? '123456' : '654321' });
}

/** Returns the failure of the rule with the given title, for a broken grant. */
async function failureOf({
  grant,
  rule,
  interception,
  breakService,
  responseTimeoutMs,
  restore,
  description: _description,
  failure: _failure,
  ...more
}: BrokenCase) {
  const kit = { valid, ...more };
  const rules = applicableRules(grantMetadataOf(grant), kit).filter(({ title }) => title.includes(rule));
  expect(rules).toHaveLength(1);
  const context = await GrantTestContext.open(grant, kit, responseTimeoutMs);
  breakService?.(context.environment.service);
  const [failure = 'the rule passed'] = Object.values(await failuresIn(context, rules, interception).finally(restore));
  return failure;
}

describe('the conformance kit detects a grant that', () => {
  const cases = [...BROKEN_GRANTS, ...BROKEN_PROOFS, ...BROKEN_SERVICES];
  beforeEach(() => void vi.spyOn(console, 'log').mockImplementation(() => undefined)); // One grant writes there.
  afterEach(() => vi.restoreAllMocks());

  it.each(cases)('$description', async (broken) => {
    expect(await failureOf(broken)).toMatch(broken.failure);
  });

  it('breaks any of its rules', () => {
    const declarations: NonNullable<Parameters<typeof grantThat>[1]>[] = [
      {},
      { polling: true },
      {
        attempts: { per: ['network'], limit: '3/600' },
        form: true,
        groups: true,
        optIn: true,
        settings: Object,
        agentScope: 'tickets:any',
      },
    ];
    const titles = declarations.flatMap((options) =>
      [
        {},
        { pending: pollingGrant().pending },
        {
          again: valid,
          singleUse: true,
          boundToClient: true,
          lifetime: 300,
          guessable: { parameter: 'code', limit: 3 },
        },
      ].flatMap((more) =>
        applicableRules(grantMetadataOf(grantThat(sound, options).grant), { valid, ...more }).map(({ title }) => title),
      ),
    );
    expect([...new Set(titles)].filter((title) => !cases.some(({ rule }) => title.includes(rule)))).toEqual([]);
  });
});

describe('the conformance kit', () => {
  it.each([false, true])(
    'finds no mistake in a correct grant whose proofs a route creates (listed: %s)',
    async (isListed) => {
      const { grant, ...kit } = passGrant(undefined, isListed);
      expect(await failuresOf(grant, kit)).toEqual({});
    },
  );

  it('tests the guesses at a grant of agents if the test declares `guessable`', () => {
    const { grant } = grantThat(sound, { agentScope: 'tickets:any' });
    const titlesWith = (kit: Partial<GrantKit>) =>
      applicableRules(grantMetadataOf(grant), { valid, ...kit }).map(({ title }) => title);
    const rule = 'refuses a right proof after 3 wrong guesses, because the test declares `guessable`';
    expect(titlesWith({ guessable: { parameter: 'ticket', limit: 3 } })).toContain(rule);
    expect(titlesWith({})).not.toContain(rule);
  });

  it('stops the clock while it guesses, so that no window of a limit ends', async () => {
    const elapsedMs: number[] = [];
    const { grant, modules } = grantThat(sound, { attempts: { per: ['network'], limit: '3/600' } });
    const kit: GrantKit = {
      modules,
      guessable: { parameter: 'ticket', limit: 3 },
      valid: async ({ service: { clock } }) => {
        const before = clock.now();
        await sleep(10);
        elapsedMs.push(clock.now() - before);
        return valid();
      },
    };
    const context = await GrantTestContext.open(grant, kit);
    const rules = applicableRules(grantMetadataOf(grant), kit);
    const rule = rules.find(({ title }) => title.startsWith('refuses a right proof')) as Rule;
    await context.check(rule).finally(() => context.close());
    expect(new Set(elapsedMs)).toEqual(new Set([0]));
  });

  it.each<[valid: GrantKit['valid'], message: RegExp, more?: Partial<GrantKit>]>([
    [
      () => ({ ticket: '123456', color: 'red' }),
      /^color: sent by `valid`, not declared in TicketBody; give the property/,
    ],
    [() => ({ ticket: undefined }), /^ticket: `valid` returns undefined; did a request in `valid` fail\?/],
    [() => ({ ticket: '654321' }), /^refused instead of a token/],
    [() => Promise.reject(new Error('the gateway is unreachable')), /^`valid`: the gateway is unreachable/],
    [valid, /^lifetime: 172800 s; a proof that ends with its bearer token is valid for/, { lifetime: 172_800 }],
    [valid, /^`valid` returns the same proof twice, .* create a proof in each call/, { singleUse: true }],
    [
      firstTwoAreValid(),
      /^one of two requests of `valid`; create a proof in each call, .*: refused instead of a token/,
    ],
  ])('checks no rule after an invalid request (%#)', async (invalid, message, more) => {
    const { grant, modules } = grantThat(sound);
    const context = await GrantTestContext.open(grant, { modules, valid: invalid, ...more });
    await expect(context.prepare().finally(() => context.close())).rejects.toThrow(message);
  });

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
