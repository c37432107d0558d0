import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { grantedScope } from '../../src/agent-auth/granted-scope.js';

const CLIENT = ['customers:own', 'agents:read', 'reports:read'];
const AGENT = ['reports:read', 'customers:own', 'other'];

describe('the granted scope', () => {
  it.each([
    ['asked for', 'customers:own', 'customers:own'],
    ['asked for, in the order of the request', 'reports:read customers:own', 'reports:read customers:own'],
    ['asked for twice', 'customers:own customers:own', 'customers:own'],
    ['asked for with spaces too many', '  customers:own  ', 'customers:own'],
    ['left out: all of the client’s that the agent has', undefined, 'customers:own reports:read'],
    ['the client’s, but not the agent’s', 'agents:read', ''],
    ['the agent’s, but not the client’s', 'other', ''],
    ['nobody’s', 'nothing', ''],
    ['empty', '', ''],
    ['in another case', 'Customers:Own', ''],
    ['separated by something else than spaces', 'customers:own,reports:read', ''],
    ['the name of a property of arrays', 'length constructor __proto__', ''],
  ])('is what was %s', (_, asked, granted) => {
    expect(grantedScope(asked, CLIENT, AGENT)).toBe(granted);
  });

  it('is never more than each of the three, for any of them, and nothing is missing that all three have', () => {
    const scopes = fc.subarray(['a', 'b', 'c', 'd', 'e']);
    fc.assert(
      fc.property(scopes, scopes, scopes, (asked, client, agent) => {
        const granted = grantedScope(asked.join(' '), client, agent);
        const all = asked.filter((scope) => client.includes(scope) && agent.includes(scope));
        expect(granted).toBe(all.join(' '));
      }),
    );
  });
});
