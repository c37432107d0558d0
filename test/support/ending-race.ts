import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { bearer } from './authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from './cookie-grant.js';
import { refreshCustomer, stay } from './customer-refresh.js';
import { expectInvalidGrant } from './expect-error.js';
import { type Move, moveOf, remember } from './remember.js';
import type { HttpClient, TestResponse } from './test-service.js';
import { infoStatus, redeem, TRANSFER, transferBody, transferToken } from './transfers.js';

/** The requests of a round begin within this time, so that each can come before, during or after the end. */
const SPREAD_MS = 20;

/** A customer with the cookies of its own browser. */
export interface RacedCustomer {
  entity_id: string;
  access_token: string;
  cookie: string;
}

/** What the requests of a race have given, and how many of them were rejected. */
export interface Given {
  accessTokens: number;
  codes: number;
  refreshTokens: number;
  pairs: number;
  rejected: number;
}

/**
 * Lets everything that leads to a customer be used at the same time as the customer ends. Afterwards nothing that was
 * made from a token of the customer gives a token, in any of the processes.
 *
 * @param clients two or more processes on one database
 * @param end ends the customer by the first process, and checks the response
 */
export async function raceEnd(
  clients: HttpClient[],
  end: (customer: RacedCustomer, client: HttpClient) => Promise<unknown>,
): Promise<Given> {
  const [one, two] = clients as [HttpClient, HttpClient];
  const first = await one.post(TOKEN, cookieBody());
  const { entity_id, access_token } = first.body;
  const customer = { entity_id, access_token, cookie: cookieHeader(first) };
  const pair = cookieHeader(await remember(two, await moveOf(one, access_token)));
  const ofLink = (await one.post(TOKEN, cookieBody(), { cookie: pair })).body.access_token;
  const { refresh_token } = (await stay(two, await moveOf(one, access_token))).body;
  const tokens = [access_token, ofLink];
  const plain = await Promise.all(tokens.map((token) => transferToken(one, token)));
  const moves = await Promise.all([...tokens, ...tokens].map((token) => moveOf(two, token)));
  const requests = tokens.flatMap((token, index) => {
    const client = clients[(index + 1) % clients.length] as HttpClient;
    return [
      () => redeem(client, plain[index]),
      () => remember(client, moves[index] as Move),
      () => stay(client, moves[2 + index] as Move),
      () => client.post(TRANSFER, transferBody(), bearer(token)),
      () => client.post(TOKEN, cookieBody(), { cookie: pair }),
      () => refreshCustomer(client, refresh_token),
    ];
  });
  const atRandom = <Result>(act: () => Promise<Result>) => sleep(Math.random() * SPREAD_MS).then(act);
  const [, ...responses] = await Promise.all([
    atRandom(() => end(customer, one)),
    ...requests.map((send): Promise<TestResponse> => atRandom(send)),
  ]);
  const given = responses.filter(({ body, cookies }) => body.entity_id === entity_id || cookies.length === 0);
  const of = (name: string) => given.map((response) => response.body[name]).filter(Boolean) as string[];
  const pairs = given.filter(({ cookies }) => cookies.length > 0).map(cookieHeader);
  for (const client of clients) {
    for (const token of [...tokens, ...of('access_token')]) expect(await infoStatus(client, token)).toBe(401);
    for (const code of of('identity_transfer_token')) expectInvalidGrant(await redeem(client, code));
    for (const token of [refresh_token, ...of('refresh_token')])
      expectInvalidGrant(await refreshCustomer(client, token));
    for (const cookie of [pair, ...pairs]) {
      const visited = await client.post(TOKEN, cookieBody(), { cookie });
      expect(visited.status).toBe(200);
      expect(visited.body.entity_id).not.toBe(entity_id);
    }
  }
  return {
    accessTokens: of('access_token').length,
    codes: of('identity_transfer_token').length,
    refreshTokens: of('refresh_token').length,
    pairs: pairs.length,
    rejected: responses.filter(({ status }) => status !== 200).length,
  };
}

/** Adds what the requests of several races have given. */
export function sumOf(all: Given[]): Given {
  const total: Given = { accessTokens: 0, codes: 0, refreshTokens: 0, pairs: 0, rejected: 0 };
  for (const given of all) for (const name of Object.keys(total) as (keyof Given)[]) total[name] += given[name];
  return total;
}
