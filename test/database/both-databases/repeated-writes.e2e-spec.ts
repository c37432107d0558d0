import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTestDatabase } from '../../../packages/conformance-kit/src/migrated-schema.js';
import { onMariadb, type TestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { type InjectedError, type LossyProxy, startLossyProxy } from '../../support/lossy-proxy.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { ACME } from '../../support/test-registry.js';
import { startTestService, type TestResponse, type TestService } from '../../support/test-service.js';
import { newCustomer, TRANSFER, transferBody } from '../../support/transfers.js';
import { DAY_SECONDS } from '../../support/use-service.js';

/** Sends the request that is under test. */
type Send = () => Promise<TestResponse>;

/** The server ends for a moment: the caller cannot know whether the statement was executed. */
const errorOf = (outcome: InjectedError['outcome']): InjectedError => ({
  errno: 1053,
  message: 'Server shutdown in progress',
  outcome,
});

describe.runIf(onMariadb)('a short outage of the database at a write', () => {
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

  /** Requests whose writes have the same effect when they are sent twice. */
  const requests: [name: string, prepare: () => Promise<Send>][] = [
    ['the first visit of a browser', async () => () => service.post(TOKEN, cookieBody())],
    [
      'the first visit of a browser on another day',
      async () => {
        const cookie = cookieHeader(await service.post(TOKEN, cookieBody()));
        nextDay();
        return () => service.post(TOKEN, cookieBody(), { cookie });
      },
    ],
    [
      'the first visit of a browser in a group',
      async () => {
        const cookie = cookieHeader(await service.post(TOKEN, cookieBody()));
        const body = cookieBody({ organization_id: undefined });
        return () => service.post(`/v2/customer/${ACME}/${randomUUID()}/token`, body, { cookie });
      },
    ],
    [
      'the first use of a refresh token on another day',
      async () => {
        const { refresh_token } = await stayOf(service);
        nextDay();
        return () => refreshCustomer(service, refresh_token);
      },
    ],
    [
      'a new customer of an agent',
      async () => {
        const headers = await agentToken();
        return () => service.post(TOKEN, agentTokenBody(), headers);
      },
    ],
    [
      'a transfer token',
      async () => {
        const { access_token } = await newCustomer(service);
        return () => service.post(TRANSFER, transferBody(), bearer(access_token));
      },
    ],
    [
      'the end of an access token',
      async () => {
        const { access_token } = await newCustomer(service);
        return () => service.send('DELETE', TOKEN, bearer(access_token));
      },
    ],
  ];

  it.each(
    requests.flatMap(([name, prepare]) => [
      [name, 'before it was executed', errorOf('lost'), prepare] as const,
      [name, 'after it was executed', errorOf('executed'), prepare] as const,
    ]),
  )('does not fail %s: each write that fails %s is repeated', async (_name, _moment, error, prepare) => {
    let failed = 0;
    for (let write = 1; failed === write - 1; write++) {
      const send = await prepare();
      let writes = 0;
      proxy.failStatements(error, (sql) => {
        const isFailed = /^(INSERT|UPDATE|DELETE)\b/.test(sql) && ++writes === write;
        if (isFailed) failed++;
        return isFailed;
      });
      const { status } = await send();
      proxy.failStatements(error, () => false);
      expect({ status, write }).toEqual({ status: 200, write });
    }
    expect(failed).toBeGreaterThan(0);
  });

  it('creates one customer for an agent, whose only audit event names it', async () => {
    const headers = await agentToken();
    service.audit.length = 0;
    let isFailed = false;
    proxy.failStatements(errorOf('executed'), (sql) => {
      const isFirst = !isFailed && /^INSERT\b/.test(sql);
      isFailed ||= isFirst;
      return isFirst;
    });
    const { body } = await service.post(TOKEN, agentTokenBody(), headers);
    expect(isFailed).toBe(true);
    const created = service.audit.filter(({ event }) => event === 'identity.created');
    expect(created.map(({ subject }) => subject?.id)).toEqual([body.entity_id]);
  });
});
