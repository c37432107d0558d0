import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase } from '../../../packages/conformance-kit/src/migrated-schema.js';
import { onMariadb, type TestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { IS_NIGHTLY } from '../../nightly.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stay, stayOf } from '../../support/customer-refresh.js';
import { endSessions } from '../../support/end-sessions.js';
import { expectInvalidGrant } from '../../support/expect-error.js';
import { type InjectedError, type LossyProxy, startLossyProxy } from '../../support/lossy-proxy.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { moveOf, remember } from '../../support/remember.js';
import { ACME, ACME_SITE } from '../../support/test-registry.js';
import { startTestService, type TestResponse, type TestService } from '../../support/test-service.js';
import {
  infoStatus,
  newCustomer,
  redeem,
  redeemBody,
  TRANSFER,
  transferBody,
  transferToken,
} from '../../support/transfers.js';

/** TiDB reports these errors for a transaction that it has rolled back, at any statement and at COMMIT. */
const ROLLED_BACK = [8002, 8005, 8022, 8028, 9007];
/** TiDB reports these errors if a part of it is unavailable. A transaction may have been committed. */
const UNKNOWN = [9001, 9002, 9003, 9004, 9005, 8501];

/** Statements that the process also sends without a request. */
const BACKGROUND = /revocation_feed|published_until|registry|^SET /;

/** A request, and the check that what its response has acknowledged is true. */
interface Attempt {
  send(): Promise<TestResponse>;
  /** @param response 200, or the 503 of an unknown outcome */
  check(response: TestResponse): Promise<void>;
}

let database: TestDatabase;
let proxy: LossyProxy;
let service: TestService;
let agent: string;

beforeAll(async () => {
  if (!onMariadb) return;
  database = await createTestDatabase();
  proxy = await startLossyProxy(database.url);
  const registry = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
  service = await startTestService({ database, registry, environment: { DATABASE_URL: proxy.through(database.url) } });
  agent = await issueAgentToken(service);
});
afterAll(async () => {
  await service?.stop();
  await proxy?.close();
  await database?.remove();
});

const visit = (cookie: string) => service.post(TOKEN, cookieBody(), { cookie });
const idOf = async (cookie: string): Promise<string> => (await visit(cookie)).body.entity_id;
const isSuccess = ({ status }: TestResponse) => status === 200;

/** A code gives at most one token, whatever the first response was. */
async function expectSingleUse(first: TestResponse, send: () => Promise<TestResponse>): Promise<void> {
  const more = [await send(), await send()];
  const tokens = [first, ...more].filter(isSuccess);
  expect(tokens.length).toBeLessThanOrEqual(1);
  for (const response of more.filter((each) => !isSuccess(each))) expectInvalidGrant(response);
  for (const { body } of tokens) expect(await infoStatus(service, body.access_token)).toBe(200);
}

const ATTEMPTS: Record<string, () => Promise<Attempt>> = {
  'a new customer': async () => ({
    send: () => service.post(TOKEN, cookieBody()),
    async check(response) {
      if (!isSuccess(response)) return;
      expect(await infoStatus(service, response.body.access_token)).toBe(200);
      expect(await idOf(cookieHeader(response))).toBe(response.body.entity_id);
    },
  }),
  'a returning customer': async () => {
    const made = await service.post(TOKEN, cookieBody());
    const cookie = cookieHeader(made);
    return {
      send: () => visit(cookie),
      async check(response) {
        if (isSuccess(response)) expect(response.body.entity_id).toBe(made.body.entity_id);
        expect(await idOf(cookie)).toBe(made.body.entity_id);
      },
    };
  },
  'a transfer token': async () => {
    const { access_token } = await newCustomer(service);
    return {
      send: () => service.post(TRANSFER, transferBody(), bearer(access_token)),
      async check(response) {
        if (isSuccess(response))
          expect((await redeem(service, response.body.identity_transfer_token)).status).toBe(200);
      },
    };
  },
  'an exchange': async () => {
    const code = await transferToken(service, (await newCustomer(service)).access_token);
    const send = () => service.post(TOKEN, redeemBody(code));
    return { send, check: (response) => expectSingleUse(response, send) };
  },
  'an exchange for a browser': async () => {
    const { access_token, entity_id } = await newCustomer(service);
    const move = await moveOf(service, access_token);
    const send = () => remember(service, move);
    return {
      send,
      async check(response) {
        if (isSuccess(response)) expect(await idOf(cookieHeader(response))).toBe(entity_id);
        await expectSingleUse(response, send);
      },
    };
  },
  'an exchange for a refresh token': async () => {
    const move = await moveOf(service, (await newCustomer(service)).access_token);
    const send = () => stay(service, move);
    return {
      send,
      async check(response) {
        if (isSuccess(response)) expect((await refreshCustomer(service, response.body.refresh_token)).status).toBe(200);
        else await expectSingleUse(response, send);
      },
    };
  },
  'a refresh': async () => {
    const { refresh_token } = await stayOf(service);
    return {
      send: () => refreshCustomer(service, refresh_token),
      async check(response) {
        const again = isSuccess(response) ? response : await refreshCustomer(service, refresh_token);
        expect(again.status).toBe(200);
        expect((await refreshCustomer(service, again.body.refresh_token)).status).toBe(200);
      },
    };
  },
  'a user of an organization': async () => {
    const body = agentTokenBody({ external_id: randomUUID() });
    const send = () => service.post(TOKEN, body, bearer(agent));
    return {
      send,
      async check(response) {
        const again = await send();
        expect(again.status).toBe(200);
        if (isSuccess(response)) expect(again.body.entity_id).toBe(response.body.entity_id);
        expect((await send()).body.entity_id).toBe(again.body.entity_id);
      },
    };
  },
  'a forgotten browser': async () => {
    const made = await service.post(TOKEN, cookieBody());
    const cookie = cookieHeader(made);
    const send = () => service.post('/v2/customer/forget', { client_id: ACME_SITE, organization_id: ACME }, { cookie });
    return {
      send,
      async check(response) {
        if (!isSuccess(response)) expect((await send()).status).toBe(200);
        expect(await idOf(cookie)).not.toBe(made.body.entity_id);
      },
    };
  },
  'the end of all sessions': async () => {
    const { access_token } = await newCustomer(service);
    return {
      send: () => endSessions(service, access_token),
      async check(response) {
        if (isSuccess(response)) expect(await infoStatus(service, access_token)).toBe(401);
      },
    };
  },
  'the end of a token': async () => {
    const { access_token } = await newCustomer(service);
    return {
      send: () => service.send('DELETE', TOKEN, bearer(access_token)),
      async check(response) {
        if (isSuccess(response)) expect(await infoStatus(service, access_token)).toBe(401);
      },
    };
  },
};

/**
 * Fails each statement of a request in turn.
 *
 * @returns the failed statements
 */
async function failEach(prepare: () => Promise<Attempt>, error: InjectedError, statuses: number[]): Promise<string[]> {
  const failed: string[] = [];
  for (;;) {
    const { send, check } = await prepare();
    const sent: string[] = [];
    const isNext = (sql: string) => !BACKGROUND.test(sql) && sent.push(sql) === failed.length + 1;
    proxy.failStatements(error, isNext);
    const response = await send();
    proxy.failStatements(error, () => false);
    const sql = sent[failed.length];
    expect(statuses, `${error.errno} ${error.outcome} at ${sql}: ${response.text}`).toContain(response.status);
    await check(response);
    if (sql === undefined) return failed;
    failed.push(sql);
  }
}

/** Requests whose change is a transaction of several statements. */
const WITH_COMMIT = [
  'a new customer',
  'an exchange for a browser',
  'an exchange for a refresh token',
  'a user of an organization',
  'a forgotten browser',
  'the end of all sessions',
];

/** Each request gets one of the errors. All get all of them at night. */
const errorsFor = (errnos: number[], name: string): number[] =>
  IS_NIGHTLY ? errnos : [errnos[Object.keys(ATTEMPTS).indexOf(name) % errnos.length] as number];

describe.runIf(onMariadb)('protocol §3.6, on a database that reports errors of a distributed database', () => {
  describe.each(Object.keys(ATTEMPTS))('%s', (name) => {
    const prepare = ATTEMPTS[name] as () => Promise<Attempt>;

    it.each(errorsFor(ROLLED_BACK, name))(
      'succeeds if the database rolls back any of its statements with error %i',
      async (errno) => {
        const failed = await failEach(prepare, { errno, outcome: 'rolledBack' }, [200]);
        expect(failed).not.toEqual([]);
        if (WITH_COMMIT.includes(name)) expect(failed).toContain('COMMIT');
      },
    );

    it.each(errorsFor(UNKNOWN, name))(
      'is correct if the outcome of any of its statements is unknown by error %i',
      async (errno) => {
        for (const outcome of ['executed', 'lost'] as const)
          expect(await failEach(prepare, { errno, outcome }, [200, 503])).not.toEqual([]);
      },
    );
  });
});
