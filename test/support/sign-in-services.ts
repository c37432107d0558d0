import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect } from 'vitest';
import type { TestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { createTestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { RIVAL_SIGN_IN, registryWithSignIn, SignInSystem, signIn } from './assertion-issuer.js';
import { expectInvalidGrant } from './expect-error.js';
import { identitiesOf } from './identities.js';
import type { TestIssuer } from './test-issuer.js';
import { ACME, ACME_ORIGIN, RIVAL } from './test-registry.js';
import type { TestResponse, TestService } from './test-service.js';
import { type UsedService, useService } from './use-service.js';

export const REMEMBER = { remember: 'browser' };
export const LINK = { ...REMEMBER, link: 'browser' };
export const FROM_PAGE = { origin: ACME_ORIGIN };

/** The other organization has the default of 30 days. */
export const RIVAL_SIGN_IN_DAYS = 5;

/** The sign-in systems of two organizations. */
export let acme: SignInSystem;
export let rival: SignInSystem;
export let service: UsedService;
/** A second process on the same database. */
export let other: UsedService;
export let database: TestDatabase;

/**
 * Starts two services that trust both sign-in systems, for the tests of a file.
 *
 * @param more further entries of the registry
 */
export function startSignInServices(more: { resource_servers?: object[] } = {}): void {
  // runs after the services have stopped
  afterAll(async () => {
    await database?.remove();
    await acme?.issuer.stop();
    await rival?.issuer.stop();
  });
  beforeAll(async () => {
    acme = await SignInSystem.start();
    rival = await SignInSystem.start();
    for (const algorithm of ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'RS512', 'PS384', 'ES512'])
      await acme.issuer.addKey(algorithm);
    database = await createTestDatabase();
  });
  const options = () => {
    const ofRival = { issuer: 'https://rival.example', jwks: rival.jwks, sign_in_days: RIVAL_SIGN_IN_DAYS };
    const registry = { ...registryWithSignIn({ [ACME]: acme.settings(), [RIVAL]: ofRival }), ...more };
    return { database, registry };
  };
  other = useService(options);
  service = useService(options);
}

export const seconds = () => service.clock.seconds();
/** A user that no other test uses. */
export const newUser = () => `user-${randomUUID()}`;
export const assert = (claims: object = {}, header: object = {}, key?: TestIssuer['keys'][number]) =>
  acme.assert(service.clock.now(), claims, header, key);
export const signInAs = async (sub: string, more: object = {}, headers = {}, at: TestService = service) =>
  signIn(at, await assert({ sub }), more, headers);
/** The audit events of the first service about linked customers. */
export const linkedEvents = () => service.audit.filter(({ event }) => event === 'identity.linked');
/** Checks that a request gets `invalid_grant` and creates no customer. */
export async function expectInvalidGrantWithoutCustomer(send: () => Promise<TestResponse>): Promise<void> {
  const before = await identitiesOf(service).count();
  expectInvalidGrant(await send());
  expect(await identitiesOf(service).count()).toBe(before);
}

export function assertRival(claims: object): Promise<string> {
  return rival.assert(service.clock.now(), { iss: 'https://rival.example', sub: newUser(), ...claims });
}

export async function signInRival(claims: object, more: object = {}, headers = {}): Promise<TestResponse> {
  const client = { client_id: RIVAL_SIGN_IN, organization_id: RIVAL };
  return signIn(service, await assertRival(claims), { ...client, ...more }, headers);
}
