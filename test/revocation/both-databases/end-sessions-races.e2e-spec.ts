import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { IS_NIGHTLY } from '../../nightly.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stay } from '../../support/customer-refresh.js';
import { END_SESSIONS } from '../../support/end-sessions.js';
import { expectInvalidGrant } from '../../support/expect-error.js';
import { type ServiceProcess, startPod } from '../../support/processes.js';
import { moveOf, remember } from '../../support/remember.js';
import {
  type HttpClient,
  httpClientOf,
  startTestService,
  type TestResponse,
  type TestService,
} from '../../support/test-service.js';
import { infoStatus, redeem, TRANSFER, transferBody, transferToken } from '../../support/transfers.js';

const ROUND_COUNT = IS_NIGHTLY ? 200 : 10;
/** The requests of a round begin within this time, so that each can come before, during or after the end. */
const SPREAD_MS = 20;

describe.runIf(onMariadb)('protocol §4.14, in two processes', () => {
  let service: TestService;
  let pods: ServiceProcess[];
  let clients: [HttpClient, HttpClient];
  beforeAll(async () => {
    const registry = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
    service = await startTestService({ registry });
    pods = await Promise.all([startPod(service), startPod(service)]);
    clients = pods.map(({ url }) => httpClientOf(url)) as typeof clients;
  });
  afterAll(async () => {
    await Promise.all((pods ?? []).map((pod) => pod.terminate()));
    await service?.stop();
  });

  it(`nothing that was made from a token of the customer gives a token afterwards, in ${ROUND_COUNT} rounds`, async () => {
    const made = { accessTokens: 0, codes: 0, refreshTokens: 0, pairs: 0, rejected: 0 };
    for (let round = 0; round < ROUND_COUNT; round++) {
      const [one, two] = round % 2 === 0 ? clients : [clients[1], clients[0]];
      const first = await one.post(TOKEN, cookieBody());
      const { entity_id, access_token } = first.body;
      const pair = cookieHeader(await remember(two, await moveOf(one, access_token)));
      const ofLink = (await one.post(TOKEN, cookieBody(), { cookie: pair })).body.access_token;
      const { refresh_token } = (await stay(two, await moveOf(one, access_token))).body;
      const tokens = [access_token, ofLink];
      const plain = await Promise.all(tokens.map((token) => transferToken(one, token)));
      const moves = await Promise.all([...tokens, ...tokens].map((token) => moveOf(two, token)));
      const body = round % 4 < 2 ? {} : { browsers: true };
      const end = () => one.post(END_SESSIONS, body, { ...bearer(access_token), cookie: cookieHeader(first) });
      const requests = [one, two].flatMap((client, index) => [
        () => redeem(client, plain[index]),
        () => remember(client, moves[index] as (typeof moves)[0]),
        () => stay(client, moves[2 + index] as (typeof moves)[0]),
        () => client.post(TRANSFER, transferBody(), bearer(tokens[index])),
        () => client.post(TOKEN, cookieBody(), { cookie: pair }),
        () => refreshCustomer(client, refresh_token),
      ]);
      const atRandom = (send: () => Promise<TestResponse>) => sleep(Math.random() * SPREAD_MS).then(send);
      const [ended, ...responses] = await Promise.all([end, ...requests].map(atRandom));
      expect(ended?.status).toBe(200);
      made.rejected += responses.filter(({ status }) => status !== 200).length;
      const given = responses.filter(({ body, cookies }) => body.entity_id === entity_id || cookies.length === 0);
      const of = (name: string) => given.map((response) => response.body[name]).filter(Boolean) as string[];
      const pairs = [pair, ...given.filter(({ cookies }) => cookies.length > 0).map(cookieHeader)];
      for (const client of clients) {
        for (const token of [...tokens, ...of('access_token')]) expect(await infoStatus(client, token)).toBe(401);
        for (const code of of('identity_transfer_token')) expectInvalidGrant(await redeem(client, code));
        for (const token of [refresh_token, ...of('refresh_token')])
          expectInvalidGrant(await refreshCustomer(client, token));
        for (const cookie of pairs) {
          const visited = await client.post(TOKEN, cookieBody(), { cookie });
          expect(visited.status).toBe(200);
          expect(visited.body.entity_id).not.toBe(entity_id);
        }
      }
      made.accessTokens += of('access_token').length;
      made.codes += of('identity_transfer_token').length;
      made.refreshTokens += of('refresh_token').length;
      made.pairs += pairs.length - 1;
    }
    for (const [what, count] of Object.entries(made)) expect(count, what).toBeGreaterThan(0);
  });
});
