import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Call, checkHistory } from '../faults/history.js';

let clock = 0;
/** A call that takes a millisecond and gets status 200, unless `more` says otherwise. */
function call(kind: Call['kind'], more: Partial<Call> = {}): Call {
  clock += 2;
  return { kind, begun: clock, ended: clock + 1, status: 200, ...more };
}
const violations = (calls: Call[]) => checkHistory(calls).violations;
const made = call('new', { browser: 'b', entityId: 'e' });
const transfer = call('transfer', { code: 'c', entityId: 'e' });
const exchange = (entityId: string) => call('exchange', { code: 'c', entityId });
const end = call('end', { token: 't' });

describe('the history checker', () => {
  it('finds no violation in a valid history', () => {
    const history = [
      made,
      call('return', { browser: 'b', status: 503 }),
      call('return', { browser: 'b', entityId: 'e' }),
      transfer,
      call('exchange', { code: 'c', status: undefined }),
      call('exchange', { code: 'c', entityId: 'e', token: 'u' }),
      call('exchange', { code: 'c', status: 400 }),
      call('info', { token: 't', begun: end.begun, ended: end.ended + 5 }), // used during the revocation
      end,
      call('info', { token: 't', status: 401 }),
      call('end', { token: 'u', status: 503 }),
      call('info', { token: 'u' }),
    ];
    const statuses = { 200: 7, 400: 1, 401: 1, 503: 2, none: 1 };
    expect(checkHistory(history)).toEqual({ requests: 12, statuses, longest: 6, violations: [] });
  });

  it.each<[Call[], string]>([
    [[transfer, exchange('e'), exchange('e')], 'exchange: c gave 2 tokens'],
    [[transfer, exchange('f')], 'exchange: c gave f, another customer'],
    [[exchange('f')], 'exchange: c gave f, another customer'],
    [[made, call('return', { browser: 'b', entityId: 'f' })], 'return: b was e and is f'],
    [[made, call('return', { browser: 'b', status: 400 })], 'return: b got 400'],
    [[end, call('info', { token: 't' })], 'info: t was ended before'],
    [[call('new', { begun: 0, ended: 4_001, entityId: 'e' })], 'new: waited 4001 ms'],
    [[call('info', { status: 500 })], 'info: status 500'],
    [[call('info', { status: 404 })], 'info: status 404'],
  ])('finds the violation in %j', (history, violation) => {
    expect(violations(history)).toEqual([violation]);
  });

  it('finds the same violations for any order of concurrent calls in the log', () => {
    const history = [transfer, exchange('e'), exchange('e'), end, call('info', { token: 't' })];
    fc.assert(
      fc.property(fc.shuffledSubarray(history, { minLength: history.length }), (shuffled) => {
        expect(violations(shuffled).sort()).toEqual(['exchange: c gave 2 tokens', 'info: t was ended before']);
      }),
    );
  });
});
