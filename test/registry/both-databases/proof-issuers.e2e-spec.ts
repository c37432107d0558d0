import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { RegistryTransactions } from '../../../src/operator/registry/registry-transactions.js';
import {
  JWT_BEARER,
  PUBLIC_SIGN_IN,
  registryWithSignIn,
  SignInSystem,
  signIn,
} from '../../support/assertion-issuer.js';
import { expectInvalidGrant, expectInvalidRequest } from '../../support/expect-error.js';
import { applyRegistry } from '../../support/registry-files.js';
import { runOffboarding } from '../../support/tenants.js';
import type { TestResponse } from '../../support/test-service.js';
import { serviceOfTest, useService } from '../../support/use-service.js';

type Audience = string[] | undefined;

const AUTH_URL = 'https://auth.example';
const VIOLATION =
  /grants\.urn:ietf:params:oauth:grant-type:jwt-bearer\.audience: another organization accepts the same/;

let system: SignInSystem;
beforeAll(async () => {
  system = await SignInSystem.start();
});
afterAll(() => system.issuer.stop());

const service = useService(() => ({ registry: registryWithSignIn({}) }));

/** An issuer that no other test uses. */
const newIssuer = () => `https://${randomUUID()}.example`;

const settingsOf = (issuer: string, audience?: Audience, more: object = {}) => ({
  [JWT_BEARER]: { issuer, jwks: system.jwks, ...(audience && { audience }), ...more },
});
const organization = (issuer: string, audience?: Audience, id: string = randomUUID()) => ({
  ...{ id, name: 'Tenant', public_clients: [PUBLIC_SIGN_IN] },
  grants: settingsOf(issuer, audience),
});

const create = (entry: object): Promise<TestResponse> => service.admin('POST', '/admin/organizations', entry);
const change = (id: string, patch: object) => service.admin('PATCH', `/admin/organizations/${id}`, patch);
const apply = (...organizations: object[]) => applyRegistry(service, { organizations });

const REJECTED: [string, Audience, Audience][] = [
  ['both without an audience', undefined, undefined],
  ['one without an audience, and one with the URL of the service', undefined, [AUTH_URL]],
  ['one without an audience, and one with the token endpoint', [`${AUTH_URL}/v2/customer/token`], undefined],
  ['one without an audience, and one with another audience', ['a'], undefined],
  ['the same audience', ['a'], ['a']],
  ['one audience in both lists', ['a', 'b'], ['c', 'b']],
];
const ACCEPTED: [string, Audience, Audience][] = [
  ['different audiences', ['a'], ['b']],
  ['different lists of audiences', ['a', 'b'], ['c', 'd']],
  ['audiences that differ in case', ['a'], ['A']],
  ['audiences that differ in a slash', ['https://a.example'], ['https://a.example/']],
];

describe('protocol §8.2: two organizations with the same issuer of assertions', () => {
  // the same check as of the admin API, with both organizations in one request
  it.each(REJECTED.slice(-1))('are rejected in a registry file with %s', async (_, one, other) => {
    const issuer = newIssuer();
    await expect(apply(organization(issuer, one), organization(issuer, other))).rejects.toThrow(VIOLATION);
  });

  it.each(REJECTED)('are rejected by the admin API with %s', async (_, one, other) => {
    const issuer = newIssuer();
    expect((await create(organization(issuer, one))).status).toBe(201);
    const second = organization(issuer, other);
    expectInvalidRequest(await create(second), VIOLATION);
    expect((await create({ ...second, grants: {} })).status).toBe(201);
    expectInvalidRequest(await change(second.id, { grants: second.grants }), VIOLATION);
    expectInvalidRequest(await change(second.id, second), VIOLATION);
  });

  it.each(ACCEPTED)('are accepted with %s', async (_, one, other) => {
    const issuer = newIssuer();
    expect((await create(organization(issuer, one))).status).toBe(201);
    expect((await create(organization(issuer, other))).status).toBe(201);
    const inFile = newIssuer();
    await apply(organization(inFile, one), organization(inFile, other));
  });

  it('are rejected also if the operator removes an audience, or changes an issuer', async () => {
    const [issuer, otherIssuer] = [newIssuer(), newIssuer()];
    const [one, two, three] = [organization(issuer, ['a']), organization(issuer, ['b']), organization(otherIssuer)];
    for (const entry of [one, two, three]) expect((await create(entry)).status).toBe(201);
    expectInvalidRequest(await change(two.id, { grants: { [JWT_BEARER]: { audience: null } } }), VIOLATION);
    expectInvalidRequest(await change(two.id, { grants: { [JWT_BEARER]: { audience: ['b', 'a'] } } }), VIOLATION);
    expectInvalidRequest(await change(three.id, { grants: { [JWT_BEARER]: { issuer } } }), VIOLATION);
    expect((await change(two.id, { grants: { [JWT_BEARER]: { audience: ['c'] } } })).status).toBe(200);
    expect((await change(two.id, { name: 'Another name' })).status).toBe(200);
  });

  it('may have different keys, and are rejected nevertheless, because the keys of a URL can change', async () => {
    const issuer = newIssuer();
    expect((await create(organization(issuer))).status).toBe(201);
    const byUrl = { [JWT_BEARER]: { issuer, jwks_uri: 'https://keys.example/jwks.json' } };
    expectInvalidRequest(await create({ ...organization(issuer), grants: byUrl }), VIOLATION);
  });

  it('are rejected if one is in the file, and the other is not', async () => {
    const issuer = newIssuer();
    const stored = organization(issuer, ['a']);
    expect((await create(stored)).status).toBe(201);
    await expect(apply(organization(issuer, ['a']))).rejects.toThrow(VIOLATION);
    await expect(apply(organization(issuer))).rejects.toThrow(VIOLATION);
    await apply(organization(issuer, ['b']));
    await apply(organization(issuer, ['c']));
    expectInvalidRequest(await create(organization(issuer, ['c'])), VIOLATION);
    await apply({ ...stored, grants: settingsOf(issuer, ['d']) });
  });

  it('may exchange their audiences in one file', async () => {
    const issuer = newIssuer();
    const [one, two] = [randomUUID(), randomUUID()];
    await apply(organization(issuer, ['a'], one), organization(issuer, ['b'], two));
    await apply(organization(issuer, ['b'], one), organization(issuer, ['a'], two));
  });

  it('are told apart by the exact issuer, of which an underscore and a percent sign are no patterns', async () => {
    const issuer = newIssuer();
    for (const other of ['', '/', '_', '%', '"', '\\'])
      expect((await create(organization(`${issuer}${other}`))).status).toBe(201);
    for (const other of ['', '/', '_', '%', '"', '\\'])
      expectInvalidRequest(await create(organization(`${issuer}${other}`)), VIOLATION);
  });

  it('cannot be made by two changes at the same time, in any order', async () => {
    for (let round = 0; round < 5; round++) {
      const issuer = newIssuer();
      const created = await Promise.all([0, 1, 2].map(() => create(organization(issuer))));
      expect(created.map(({ status }) => status).sort()).toEqual([201, 400, 400]);
      const inFile = newIssuer();
      const outcomes = await Promise.all([
        apply(organization(inFile)).then(
          () => true,
          () => false,
        ),
        create(organization(inFile)).then(({ status }) => status === 201),
      ]);
      expect(outcomes.filter((isDone) => isDone)).toHaveLength(1);
    }
  });

  it('cannot be made by a file that was checked before another change', async () => {
    const issuer = newIssuer();
    const transactions = service.application.get(RegistryTransactions, { strict: false });
    const run = transactions.run.bind(transactions);
    vi.spyOn(transactions, 'run').mockImplementationOnce(async (...parameters) => {
      expect((await create(organization(issuer))).status).toBe(201);
      return run(...parameters);
    });
    await expect(apply(organization(issuer))).rejects.toThrow(VIOLATION);
  });

  it('do not include an organization that was deleted', async () => {
    const issuer = newIssuer();
    const [first, second] = [organization(issuer), organization(issuer)];
    expect((await create({ ...first, suspended: true })).status).toBe(201);
    expect((await service.admin('DELETE', `/admin/organizations/${first.id}`)).status).toBe(200);
    service.passDays(1.01);
    await runOffboarding(service);
    expect((await create(second)).status).toBe(201);
  });
});

describe('protocol §4.7: an assertion for one of two organizations with the same issuer', () => {
  it('is rejected in the other organization', async () => {
    const issuer = newIssuer();
    const [one, two] = [organization(issuer, ['one']), organization(issuer, ['two'])];
    for (const entry of [one, two]) expect((await create(entry)).status).toBe(201);
    const signInTo = (organization_id: string, assertion: string) =>
      signIn(service, assertion, { client_id: PUBLIC_SIGN_IN, organization_id });
    const assertion = await system.assert(service.clock.now(), { iss: issuer, aud: 'one' });
    expectInvalidGrant(await signInTo(two.id, assertion));
    expect((await signInTo(one.id, assertion)).status).toBe(200);
  });
});

describe('protocol §6.10: a token with the audience of a trusted issuer', () => {
  it('is no assertion, although the organization has the same issuer and audience', async () => {
    const trusted = system.issuer.trust({ typ: 'JWT' });
    const { issuer, audience } = trusted as { issuer: string; audience: string };
    const environment = { TRUSTED_AGENT_ISSUERS: JSON.stringify([trusted]) };
    const own = await serviceOfTest({ registry: registryWithSignIn({}), environment });
    const entry = organization(issuer, [audience, 'customers']);
    expect((await own.admin('POST', '/admin/organizations', entry)).status).toBe(201);
    const signInWith = async (aud: string | string[]) => {
      const assertion = await system.assert(own.clock.now(), { sub: randomUUID(), aud });
      return signIn(own, assertion, { client_id: PUBLIC_SIGN_IN, organization_id: entry.id });
    };
    expectInvalidGrant(await signInWith(audience));
    expectInvalidGrant(await signInWith(['customers', audience]));
    expect((await signInWith('customers')).status).toBe(200);
  });
});
