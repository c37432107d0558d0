import { describe, expect, it } from 'vitest';
import type { SigningKeys } from '../../src/access-token/signing-keys.js';
import { lineageByBoth, lineageByTransfer, rootOf } from '../../src/access-token/token-lineage.js';
import { Descents } from '../../src/bearer/descents.js';
import type { AgentPrincipal, CustomerPrincipal } from '../../src/bearer/principal.js';
import type { Clock } from '../../src/platform/clock.js';

const UUID = '01234567-89ab-4cde-8f01-23456789abcd';

const descentsWith = (...secrets: string[]) =>
  new Descents(
    { derivedSecret: () => secrets[0], derivedSecrets: () => secrets } as Partial<SigningKeys> as SigningKeys,
    { seconds: () => 1 } as Clock,
  );

const customerWith = (more: object = {}) => {
  const claims = {
    jti: `${UUID}.${UUID}`,
    sub: UUID,
    aud: 'customer-api',
    client_id: 'c'.repeat(128),
    iat: 2e9,
    ...more,
  };
  return { kind: 'customer', organizationId: UUID, claims } as unknown as CustomerPrincipal;
};

describe('the text that ties a proof to its caller', () => {
  it('has at most 2,000 characters for the longest claims of a customer that can still be transferred', () => {
    const act = { sub: UUID, client_id: 'a'.repeat(128), gen: 1e9 };
    const ancestors = Array.from({ length: 8 }, () => [UUID, `${UUID}.${UUID}`]).flat();
    const claims = { gen: 1e9, ancestors, act, transfers: 7 };
    expect(descentsWith('one').textOf(customerWith(claims)).length).toBeLessThanOrEqual(2_000);
  });

  it('is refused with invalid_token for longer claims of a trusted issuer', () => {
    const claims = {
      jti: 'a'.repeat(64),
      sub: 's'.repeat(2_000),
      client_id: 'c',
      iat: 1,
      iss: 'https://login.example',
    };
    const agent = { kind: 'agent', organizationId: UUID, claims } as unknown as AgentPrincipal;
    expect(() => descentsWith('one').textOf(agent)).toThrow(expect.objectContaining({ code: 'invalid_token' }));
  });

  it('is valid as long as the file has the key that signed when it was written', () => {
    const text = descentsWith('one').textOf(customerWith());
    expect(descentsWith('two', 'one').read(text)).toMatchObject({ entityId: UUID, organizationId: UUID });
    expect(() => descentsWith('two').read(text)).toThrow(expect.objectContaining({ code: 'invalid_grant' }));
  });
});

describe('the proof of an agent', () => {
  const proof = { gen: 1, ancestors: [], act: { sub: UUID, client_id: 'c', gen: 3 }, transfers: 1 };
  const agent = { jti: 'j', sub: UUID, client_id: 'c', iat: 1 };

  it('is not for an agent of a trusted issuer whose id is the same', () => {
    expect(lineageByBoth(proof, { ...agent, aud: 'agent-api', gen: 3 })).toMatchObject({ act: proof.act });
    expect(() => lineageByBoth(proof, { ...agent, iss: 'https://login.example' })).toThrow(/of another agent/);
  });

  it.each([
    ['a customer', { gen: 1, ancestors: ['token'] }, 'family.token', 'token'],
    ['a customer', { gen: 1, ancestors: ['family', 'family.one'] }, 'token', 'family'],
    ['the agent', { ...proof, ancestors: ['agent', 'agent.token', 'token'] }, 'other.token', 'token'],
  ])('has the root of the chain of %s: %j, redeemed with %s', (_, lineage, jti, root) => {
    expect(rootOf(lineageByBoth(lineage, { ...agent, jti, aud: 'agent-api', gen: 3 }))).toBe(root);
  });

  it.each([
    ['family.one', 'family.one', ['family', 'family.one']],
    ['family.one', 'family.two', ['family', 'family.one', 'family.two']],
    ['family.one', 'other.two', ['family', 'family.one', 'other', 'other.two', 'family']],
    ['one', 'two', ['one', 'two', 'one']],
  ])(
    'of the agent itself that %s creates and %s redeems has the next token as root',
    (creator, redeemer, ancestors) => {
      const by = (jti: string) => ({ ...agent, jti, aud: 'agent-api', gen: 3 }) as const;
      const lineage = lineageByBoth(lineageByTransfer(by(creator), 1), by(redeemer));
      expect([lineage.ancestors, rootOf(lineage)]).toEqual([ancestors, undefined]);
      const next = lineageByTransfer({ ...lineage, jti: 'customer.token', sub: UUID, client_id: 'c', iat: 1 });
      expect(rootOf(next)).toBe('customer');
    },
  );
});
