import { DataSource, IsNull, Not } from 'typeorm';
import { Session } from '../../src/session/session.entity.js';
import { pkce } from './agent-tokens.js';
import { cookieHeader, TOKEN } from './cookie-grant.js';
import { ACME_ORIGIN, ACME_SITE, changed, testRegistry } from './test-registry.js';
import type { HttpClient, TestResponse, TestService } from './test-service.js';
import { redeemBody, transferToken } from './transfers.js';

/** The registry of the tests, in which these clients may send `remember: "browser"`. */
export function rememberingRegistry(clientIds: string[] = [ACME_SITE]): ReturnType<typeof testRegistry> {
  const registry = testRegistry();
  registry.clients = changed(registry.clients, clientIds, { grants: { identity_token: { remember: ['browser'] } } });
  return registry;
}

/** A transfer token with a code challenge, and its verifier. */
export interface Move {
  code: string;
  verifier: string;
}

/** Creates a transfer token with a code challenge, by default with a customer's access token. */
export async function moveOf(service: HttpClient, token: string, more: object = {}): Promise<Move> {
  const { verifier, asked } = pkce();
  return { code: await transferToken(service, token, { ...asked, ...more }), verifier };
}

/** Exchanges a transfer token with `remember: "browser"`, from a page of the client. */
export function remember(
  service: HttpClient,
  { code, verifier }: Move,
  { cookie, body = {}, headers = {} }: { cookie?: string | undefined; body?: object; headers?: object } = {},
): Promise<TestResponse> {
  const parameters = redeemBody(code, { code_verifier: verifier, remember: 'browser', ...body });
  return service.post(TOKEN, parameters, { origin: ACME_ORIGIN, ...(cookie && { cookie }), ...headers });
}

/** The cookies of a browser that remembers the customer of a token. */
export async function rememberedPair(service: HttpClient, token: string, cookie?: string): Promise<string> {
  return cookieHeader(await remember(service, await moveOf(service, token), { cookie }));
}

/** The sessions of browsers that lead to a customer by a transfer. */
export function transferredSessionsOf({ application }: TestService, customerId: string): Promise<Session[]> {
  const sessions = application.get(DataSource).getRepository(Session);
  return sessions.findBy({ customerId, kind: 'transferred', browserId: Not(IsNull()) });
}
