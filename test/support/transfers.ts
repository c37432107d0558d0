import { randomUUID } from 'node:crypto';
import { DataSource, type Repository } from 'typeorm';
import { expect } from 'vitest';
import { sha256 } from '../../src/platform/secret.js';
import { AgentSession } from '../../src/session/agent/agent-session.entity.js';
import { Session } from '../../src/session/session.entity.js';
import { exchangeCode } from './agent-tokens.js';
import { bearer } from './authorization-headers.js';
import { AgentBrowser, codeOf } from './authorization-page.js';
import { cookieBody, TOKEN } from './cookie-grant.js';
import { ACME_SITE } from './test-registry.js';
import type { HttpClient, TestResponse, TestService } from './test-service.js';

export const TRANSFER = '/v2/customer/identity_transfer';
export const INFO = '/v2/customer/info';

/** The parameters of protocol §4.4, for a bearer that is a customer token. */
export function transferBody(more: object = {}): object {
  return { bearer_type: 'customer', client_id: ACME_SITE, ...more };
}

/** The parameters of protocol §4.5. */
export function redeemBody(code: unknown, more: object = {}): object {
  return { grant_type: 'identity_token', client_id: ACME_SITE, code, ...more };
}

/** Creates a customer with the cookie grant. Returns its `entity_id` and `access_token`. */
export async function newCustomer(service: HttpClient): Promise<{ entity_id: string; access_token: string }> {
  return (await service.post(TOKEN, cookieBody())).body;
}

/** Creates a transfer token, by default with the access token of a customer. */
export async function transferToken(service: HttpClient, token: string, more: object = {}): Promise<string> {
  const { status, body } = await service.post(TRANSFER, transferBody(more), bearer(token));
  expect(status).toBe(200);
  return body.identity_transfer_token;
}

/** Exchanges a transfer token for an access token. */
export function redeem(service: HttpClient, code: unknown, more: object = {}, headers = {}): Promise<TestResponse> {
  return service.post(TOKEN, redeemBody(code, more), headers);
}

/** An authorization code from the page, for the backend. */
export function authorizationCode(service: HttpClient): Promise<string> {
  return codeOf(new AgentBrowser(service));
}

/** An agent access token and its refresh token. */
export async function agentTokenPair(service: HttpClient): Promise<{ access_token: string; refresh_token: string }> {
  return (await exchangeCode(service, await authorizationCode(service))).body;
}

export async function infoStatus(service: HttpClient, token: string): Promise<number> {
  return (await service.send('GET', INFO, bearer(token))).status;
}

/** Makes the redemption of a transfer token or code older, as if time had passed on the clock of the database. */
export async function ageRedemption(service: TestService, code: string, seconds: number): Promise<void> {
  for (const sessions of [sessionsIn(service), agentSessionsIn(service)] as Repository<Redeemed>[]) {
    const session = await sessions.findOneBy({ codeHash: sha256(code) });
    if (!session) continue;
    const redeemedAt = new Date((session.redeemedAt as Date).getTime() - seconds * 1000);
    await sessions.update({ id: session.id }, { redeemedAt });
    return;
  }
  throw new Error('the code is not stored');
}

type Redeemed = Pick<Session, 'id' | 'codeHash' | 'redeemedAt'>;

/** The sessions of customers, transfer tokens included. */
export function sessionsIn({ application }: TestService): Repository<Session> {
  return application.get(DataSource).getRepository(Session);
}

/** The hashes by which the database finds the session of a refresh token `REGION:F.R`, and the token. */
export function hashesOf(refreshToken: string) {
  const [family = '', secret = ''] = (refreshToken.split(':')[1] as string).split('.');
  return { refreshIdHash: sha256(family), tokenHash: sha256(secret) };
}

/** The sessions of agents, authorization codes included. */
export function agentSessionsIn({ application }: TestService): Repository<AgentSession> {
  return application.get(DataSource).getRepository(AgentSession);
}

/** Every value in every table, as one text. */
export async function everythingIn({ application }: TestService): Promise<string> {
  const dataSource = application.get(DataSource);
  const tables = dataSource.entityMetadatas.map(({ tableName }) => dataSource.query(`SELECT * FROM ${tableName}`));
  return JSON.stringify(await Promise.all(tables));
}

/** Checks that a caller cannot distinguish the responses. `send` gets the id of the request. */
export async function expectSameResponse(...send: ((headers: { 'x-request-id': string }) => Promise<TestResponse>)[]) {
  const named = { 'x-request-id': randomUUID() };
  const [first, ...others] = (await Promise.all(send.map((each) => each(named)))).map(({ status, headers, text }) => ({
    status,
    headers: Object.fromEntries([...headers].filter(([name]) => name !== 'date')),
    text,
  }));
  for (const other of others) expect(other).toEqual(first);
}
