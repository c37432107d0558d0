import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { grantedScope } from '../../src/agent-auth/agent-token-issuer.js';

const CLIENT = ['customers:own', 'agents:read', 'reports:read'];
const AGENT = ['reports:read', 'customers:own', 'other'];

describe('the granted scope', () => {
  it.each([
    ['requested', 'customers:own', 'customers:own'],
    ['requested, in the order of the request', 'reports:read customers:own', 'reports:read customers:own'],
    ['requested twice', 'customers:own customers:own', 'customers:own'],
    ['requested with additional spaces', '  customers:own  ', 'customers:own'],
    ['omitted, which requests every scope that client and agent share', undefined, 'customers:own reports:read'],
    ['allowed for the client but not for the agent', 'agents:read', ''],
    ['allowed for the agent but not for the client', 'other', ''],
    ['allowed for neither', 'nothing', ''],
    ['empty', '', ''],
    ['in another case', 'Customers:Own', ''],
    ['separated by commas', 'customers:own,reports:read', ''],
    ['the name of an array property', 'length constructor __proto__', ''],
  ])('is right for a scope parameter that is %s', (_, requested, granted) => {
    expect(grantedScope(requested, CLIENT, AGENT)).toBe(granted);
  });

  it('is the intersection of the scopes of the request, the client and the agent', () => {
    const scopes = fc.subarray(['a', 'b', 'c', 'd', 'e']);
    fc.assert(
      fc.property(scopes, scopes, scopes, (requested, client, agent) => {
        const granted = grantedScope(requested.join(' '), client, agent);
        const all = requested.filter((scope) => client.includes(scope) && agent.includes(scope));
        expect(granted).toBe(all.join(' '));
      }),
    );
  });
});
