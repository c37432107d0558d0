import { DataSource } from 'typeorm';
import { expect } from 'vitest';
import { Session } from '../../src/session/session.entity.js';
import { TOKEN } from './cookie-grant.js';
import { type Move, moveOf } from './remember.js';
import { ACME_NATIVE, ACME_SITE, changed, testRegistry } from './test-registry.js';
import type { HttpClient, TestResponse, TestService } from './test-service.js';
import { hashesOf, newCustomer, redeemBody } from './transfers.js';

/** The grants of a client that may use refresh tokens of customers. */
export const WITH_REFRESH = ['cookie', 'agent_token', 'identity_token', 'refresh_token'];

/** The registry of the tests, in which two clients of ACME may send `remember: "refresh_token"`. */
export function refreshingRegistry(more: object = {}): ReturnType<typeof testRegistry> {
  const registry = testRegistry();
  const grants = { identity_token: { remember: ['refresh_token'] } };
  const fields = { grant_types: WITH_REFRESH, grants, ...more };
  registry.clients = changed(registry.clients, [ACME_SITE, ACME_NATIVE], fields);
  return registry;
}

/** Exchanges a transfer token with `remember: "refresh_token"`. */
export function stay(service: HttpClient, { code, verifier }: Move, more: object = {}, headers: object = {}) {
  const body = redeemBody(code, { code_verifier: verifier, remember: 'refresh_token', ...more });
  return service.post(TOKEN, body, { ...headers });
}

/** The tokens of a customer that stays on a second device. */
export interface Stay {
  entity_id: string;
  access_token: string;
  refresh_token: string;
}

/** Moves a customer to a second device, by default a new customer. */
export async function stayOf(service: TestService, token?: string, more: object = {}, headers: object = {}) {
  const bearerToken = token ?? (await newCustomer(service)).access_token;
  const response = await stay(service, await moveOf(service, bearerToken, more), {}, headers);
  expect(response.status).toBe(200);
  return response.body as Stay;
}

/** Uses a refresh token of a customer. */
export function refreshCustomer(
  service: Pick<TestService, 'post'>,
  refresh_token: string,
  more: object = {},
  headers: object = {},
): Promise<TestResponse> {
  return service.post(
    TOKEN,
    { grant_type: 'refresh_token', client_id: ACME_SITE, refresh_token, ...more },
    { ...headers },
  );
}

/** The sessions with a refresh token of a customer. */
export function refreshSessionsOf({ application }: TestService, customerId: string): Promise<Session[]> {
  return application.get(DataSource).getRepository(Session).findBy({ customerId, kind: 'refresh' });
}

/** The tokens that are the current one of a session. */
export async function currentOf({ application }: TestService, tokens: string[]): Promise<string[]> {
  const sessions = await application.get(DataSource).getRepository(Session).find();
  const current = sessions.map(({ currentHash }) => currentHash);
  return tokens.filter((token) => current.includes(hashesOf(token).tokenHash));
}
