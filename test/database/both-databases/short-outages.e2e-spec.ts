import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  createTestDatabase,
  onMariadb,
  type TestDatabase,
} from '../../../packages/conformance-kit/src/test-database.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { type InjectedError, type LossyProxy, startLossyProxy } from '../../support/lossy-proxy.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { ACME } from '../../support/test-registry.js';
import { startTestService, type TestResponse, type TestService } from '../../support/test-service.js';
import { infoStatus, newCustomer, TRANSFER, transferBody } from '../../support/transfers.js';
import { DAY_SECONDS } from '../../support/use-service.js';

/** Sends the request that is under test. */
type Send = () => Promise<TestResponse>;

/** The server ends for a moment: the caller cannot know whether the statement was executed. */
const errorOf = (outcome: InjectedError['outcome']): InjectedError => ({
  errno: 1053,
  message: 'Server shutdown in progress',
  outcome,
});

/** Not one of the publisher of the feed. */
const isWriteOfRequest = (sql: string) =>
  /^(INSERT|UPDATE|DELETE)\b/.test(sql) && !/revocation_feed|published_until/.test(sql);

describe.runIf(onMariadb)('protocol §2.12, after a short outage of the database at a write', () => {
  let database: TestDatabase;
  let proxy: LossyProxy;
  let service: TestService;
  beforeAll(async () => {
    database = await createTestDatabase();
    proxy = await startLossyProxy(database.url);
    const registry = refreshingRegistry();
    service = await startTestService({ registry, database: { ...database, url: proxy.through(database.url) } });
  });
  afterAll(async () => {
    await service?.stop();
    await proxy?.close();
    await database?.remove();
  });
  beforeEach(() => service.clock.reset());

  const nextDay = () => service.clock.advance({ seconds: DAY_SECONDS });
  const agentToken = async () => bearer(await issueAgentToken(service));

  /** Requests that a caller may repeat after a 503, and what the repetition returns again. */
  const requests: [name: string, prepare: () => Promise<{ send: Send; entityId?: string }>][] = [
    ['the first visit of a browser', async () => ({ send: () => service.post(TOKEN, cookieBody()) })],
    [
      'the first visit of a browser on another day',
      async () => {
        const first = await service.post(TOKEN, cookieBody());
        nextDay();
        const cookie = cookieHeader(first);
        return { send: () => service.post(TOKEN, cookieBody(), { cookie }), entityId: first.body.entity_id };
      },
    ],
    [
      'the first visit of a browser in a group',
      async () => {
        const cookie = cookieHeader(await service.post(TOKEN, cookieBody()));
        const body = cookieBody({ organization_id: undefined });
        const path = `/v2/customer/${ACME}/${randomUUID()}/token`;
        return { send: () => service.post(path, body, { cookie }) };
      },
    ],
    [
      'the first use of a refresh token on another day',
      async () => {
        const { refresh_token, entity_id } = await stayOf(service);
        nextDay();
        return { send: () => refreshCustomer(service, refresh_token), entityId: entity_id };
      },
    ],
    [
      'a new customer of an agent',
      async () => {
        const headers = await agentToken();
        return { send: () => service.post(TOKEN, agentTokenBody(), headers) };
      },
    ],
    [
      'a transfer token',
      async () => {
        const { access_token } = await newCustomer(service);
        return { send: () => service.post(TRANSFER, transferBody(), bearer(access_token)) };
      },
    ],
  ];

  /** Fails a write of the requests that follow, by its number. @returns whether it was sent */
  function failWrite(number: number, error: InjectedError): () => boolean {
    let writes = 0;
    proxy.failStatements(error, (sql) => isWriteOfRequest(sql) && ++writes === number);
    return () => {
      proxy.failStatements(error, () => false);
      return writes >= number;
    };
  }

  it.each(
    requests.flatMap(([name, prepare]) => [
      [name, 'before it was executed', errorOf('lost'), prepare] as const,
      [name, 'after it was executed', errorOf('executed'), prepare] as const,
    ]),
  )(
    '%s gets 503 at each write that fails %s, and a token if it is repeated',
    async (_name, _moment, error, prepare) => {
      let failed = 0;
      for (let write = 1; failed === write - 1; write++) {
        const { send, entityId } = await prepare();
        const wasSent = failWrite(write, error);
        const { status } = await send();
        if (!wasSent()) break;
        failed++;
        expect({ status, write }).toEqual({ status: 503, write });
        const { status: repeated, body } = await send();
        expect({ repeated, write }).toEqual({ repeated: 200, write });
        if (entityId !== undefined) expect(body.entity_id).toBe(entityId);
      }
      expect(failed).toBeGreaterThan(0);
    },
  );

  it.each(['lost', 'executed'] as const)(
    'the end of an access token whose write was %s can be repeated',
    async (outcome) => {
      const { access_token } = await newCustomer(service);
      const end = () => service.send('DELETE', TOKEN, bearer(access_token));
      const wasSent = failWrite(1, errorOf(outcome));
      expect((await end()).status).toBe(503);
      expect(wasSent()).toBe(true);
      expect((await end()).status).toBe(200);
      expect(await infoStatus(service, access_token)).toBe(401);
    },
  );
});
