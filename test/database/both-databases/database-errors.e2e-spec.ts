import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { IS_NIGHTLY } from '../../nightly.js';
import { agentTokenBody, exchangeCode, refresh } from '../../support/agent-tokens.js';
import { registryWithSignIn, SignInSystem, signIn } from '../../support/assertion-issuer.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, stay, stayOf } from '../../support/customer-refresh.js';
import { useDatabase } from '../../support/databases.js';
import { endSessions } from '../../support/end-sessions.js';
import { expectInvalidGrant } from '../../support/expect-error.js';
import { type InjectedError, type LossyProxy, startLossyProxy } from '../../support/lossy-proxy.js';
import { ERASE, EXPORT, manageCustomer, managerToken, managingRegistry } from '../../support/managed-customers.js';
import { moveOf, remember } from '../../support/remember.js';
import { FROM_PAGE, LINK } from '../../support/sign-in-services.js';
import { ACME, ACME_SITE } from '../../support/test-registry.js';
import type { TestResponse } from '../../support/test-service.js';
import {
  agentTokenPair,
  authorizationCode,
  infoStatus,
  newCustomer,
  redeem,
  redeemBody,
  TRANSFER,
  transferBody,
  transferToken,
} from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

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

const database = useDatabase(createTestDatabase);
let proxy: LossyProxy;
let users: SignInSystem;
afterAll(async () => {
  await users?.issuer.stop();
  await proxy?.close();
});
const service = useService(async () => {
  proxy = await startLossyProxy(database.url);
  users = await SignInSystem.start();
  const registry = registryWithSignIn({ [ACME]: users.settings() }, managingRegistry());
  return { database, registry, environment: { DATABASE_URL: proxy.through(database.url) } };
});
let agent: string;
beforeAll(async () => {
  agent = await managerToken(service);
});

const idOf = (cookie: string) => service.idOf(cookie);
const isSuccess = ({ status }: TestResponse) => status === 200;

async function expectCustomerToken({ body }: TestResponse): Promise<void> {
  expect(await infoStatus(service, body.access_token)).toBe(200);
}

async function expectAgentToken({ body }: TestResponse): Promise<void> {
  expect((await service.post(TOKEN, agentTokenBody(), bearer(body.access_token))).status).toBe(200);
}

/** A proof gives at most one token, whatever the first response was. Each token is valid when it arrives. */
async function expectSingleUse(
  first: TestResponse,
  send: () => Promise<TestResponse>,
  expectValid: (response: TestResponse) => Promise<void> = expectCustomerToken,
): Promise<void> {
  if (isSuccess(first)) await expectValid(first);
  const responses = [first];
  while (responses.length < 3) {
    const again = await send();
    if (isSuccess(again)) await expectValid(again);
    else expectInvalidGrant(again);
    responses.push(again);
  }
  expect(responses.filter(isSuccess).length).toBeLessThanOrEqual(1);
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
      send: () => service.visit(cookie),
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
  'an authorization code': async () => {
    const code = await authorizationCode(service);
    const send = () => exchangeCode(service, code);
    return { send, check: (response) => expectSingleUse(response, send, expectAgentToken) };
  },
  'a refresh of an agent': async () => {
    const { refresh_token } = await agentTokenPair(service);
    return {
      send: () => refresh(service, refresh_token),
      async check(response) {
        const again = isSuccess(response) ? response : await refresh(service, refresh_token);
        expect(again.status).toBe(200);
        await expectAgentToken(again);
        expect((await refresh(service, again.body.refresh_token)).status).toBe(200);
      },
    };
  },
  'an agent token': async () => ({
    send: () => service.post(TOKEN, agentTokenBody(), bearer(agent)),
    async check(response) {
      if (!isSuccess(response)) return;
      await expectCustomerToken(response);
      const { entity_id } = response.body;
      expect((await service.post(TOKEN, agentTokenBody({ entity_id }), bearer(agent))).status).toBe(200);
    },
  }),
  'a sign-in with the customer of the browser': async () => {
    const visitor = await service.post(TOKEN, cookieBody());
    const sub = randomUUID();
    const assertion = await users.assert(service.clock.now(), { sub });
    const send = () => signIn(service, assertion, LINK, { ...FROM_PAGE, cookie: cookieHeader(visitor) });
    return {
      send,
      async check(response) {
        await expectSingleUse(response, send);
        const later = await signIn(service, await users.assert(service.clock.now(), { sub }));
        expect(later.status).toBe(200);
        if (isSuccess(response)) {
          expect(later.body.entity_id).toBe(visitor.body.entity_id);
          expect(await idOf(cookieHeader(response))).toBe(visitor.body.entity_id);
        }
      },
    };
  },
  'an export': async () => {
    const { entity_id } = await newCustomer(service);
    return {
      send: () => manageCustomer(service, EXPORT, agent, { customer_id: entity_id }),
      async check(response) {
        if (isSuccess(response)) expect(response.text).toContain(entity_id);
      },
    };
  },
  'an erasure': async () => {
    const made = await service.post(TOKEN, cookieBody());
    const { entity_id, access_token } = made.body;
    const send = () => manageCustomer(service, ERASE, agent, { customer_id: entity_id });
    return {
      send,
      async check(response) {
        if (!isSuccess(response)) expect((await send()).status).toBe(200);
        expect(await infoStatus(service, access_token)).toBe(401);
        expect(await idOf(cookieHeader(made))).not.toBe(entity_id);
      },
    };
  },
  'a revocation by a client': async () => {
    const { refresh_token } = await stayOf(service);
    return {
      send: () => service.post('/v2/customer/revoke', { client_id: ACME_SITE, token: refresh_token }),
      async check(response) {
        if (isSuccess(response)) expectInvalidGrant(await refreshCustomer(service, refresh_token));
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
  'a sign-in with the customer of the browser',
  'an erasure',
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
        const isComplete = (statements: string[]) => !WITH_COMMIT.includes(name) || statements.includes('COMMIT');
        let failed = await failEach(prepare, { errno, outcome: 'rolledBack' }, [200]);
        // a transaction of the publisher can take the place of the COMMIT in the order of the statements
        for (let again = 0; again < 2 && !isComplete(failed); again++)
          failed = await failEach(prepare, { errno, outcome: 'rolledBack' }, [200]);
        expect(failed).not.toEqual([]);
        expect(isComplete(failed)).toBe(true);
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
