import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Call, checkHistory } from '../faults/history.js';

let clock = 0;
/** A call that takes a millisecond and gets status 200, unless `more` says otherwise. */
function call(kind: Call['kind'], more: Partial<Call> = {}): Call {
  clock += 2;
  return { kind, begun: clock, ended: clock + 1, status: 200, ...more };
}
const violations = (...calls: Call[]) => checkHistory(calls).violations;

describe('the history checker', () => {
  it('finds no violation in a valid history', () => {
    const history = [
      call('new', { browser: 'b', entityId: 'e' }),
      call('return', { browser: 'b', status: 503 }),
      call('return', { browser: 'b', entityId: 'e' }),
      call('transfer', { code: 'c', entityId: 'e' }),
      call('exchange', { code: 'c', status: undefined }),
      call('exchange', { code: 'c', entityId: 'e', token: 't' }),
      call('exchange', { code: 'c', status: 400 }),
      call('info', { token: 't' }),
      call('end', { token: 't' }),
      call('info', { token: 't', status: 401 }),
    ];
    expect(checkHistory(history)).toEqual({
      requests: 10,
      statuses: { 200: 6, 400: 1, 401: 1, 503: 1, none: 1 },
      longest: 1,
      violations: [],
    });
  });

  it('finds a code that was exchanged for two tokens', () => {
    const made = call('transfer', { code: 'c', entityId: 'e' });
    const won = () => call('exchange', { code: 'c', entityId: 'e' });
    expect(violations(made, won(), won())).toEqual(['exchange: c gave 2 tokens']);
  });

  it('finds a code that gave a token of another customer, and a code that was never issued', () => {
    const made = call('transfer', { code: 'c', entityId: 'e' });
    expect(violations(made, call('exchange', { code: 'c', entityId: 'f' }))).toHaveLength(1);
    expect(violations(call('exchange', { code: 'c', entityId: 'f' }))).toHaveLength(1);
  });

  it('finds a browser whose customer changed, or whose cookies were rejected', () => {
    const made = call('new', { browser: 'b', entityId: 'e' });
    expect(violations(made, call('return', { browser: 'b', entityId: 'f' }))).toEqual(['return: b was e and is f']);
    expect(violations(made, call('return', { browser: 'b', status: 400 }))).toEqual(['return: b got 400']);
  });

  it('finds a token that was valid after its revocation, but not one that was used during the revocation', () => {
    const end = call('end', { token: 't' });
    expect(violations(end, call('info', { token: 't' }))).toEqual(['info: t was ended before']);
    expect(violations(end, call('info', { token: 't', begun: end.begun, ended: end.ended + 5 }))).toEqual([]);
    expect(violations(call('end', { token: 't', status: 503 }), call('info', { token: 't' }))).toEqual([]);
  });

  it('finds a response after more than 3 s, and a response with an unexpected status', () => {
    expect(violations(call('new', { begun: 0, ended: 3_001, entityId: 'e' }))).toEqual(['new: waited 3001 ms']);
    expect(violations(call('info', { status: 500 }))).toEqual(['info: status 500']);
    expect(violations(call('info', { status: 404 }))).toEqual(['info: status 404']);
  });

  it('finds the same violations for any order of concurrent calls in the log', () => {
    const history = [
      call('transfer', { code: 'c', entityId: 'e' }),
      call('exchange', { code: 'c', entityId: 'e' }),
      call('exchange', { code: 'c', entityId: 'e' }),
      call('end', { token: 't' }),
      call('info', { token: 't' }),
    ];
    fc.assert(
      fc.property(fc.shuffledSubarray(history, { minLength: history.length }), (shuffled) => {
        expect(violations(...shuffled).sort()).toEqual(['exchange: c gave 2 tokens', 'info: t was ended before']);
      }),
    );
  });
});
