import { describe, expect, it } from 'vitest';
import type { SigningKeys } from '../../src/access-token/signing-keys.js';
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
    jti: UUID,
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
    const act = { sub: UUID, sid: `${UUID}.${UUID}`, client_id: 'a'.repeat(128), gen: 1e9 };
    const claims = { gen: 1e13, sid: UUID, ep: 1e9, exp: 2e9, act };
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
