import { describe, expect, it, onTestFinished } from 'vitest';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader, TestBrowser } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stay } from '../../support/customer-refresh.js';
import { endSessions } from '../../support/end-sessions.js';
import { expectError, expectInvalidGrant, expectLimited } from '../../support/expect-error.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { PROOF, proofExtension } from '../../support/proof-extension.js';
import { times } from '../../support/races.js';
import { type Move, moveOf, remember } from '../../support/remember.js';
import { addCopies } from '../../support/session-copies.js';
import { ACME_SITE, changed } from '../../support/test-registry.js';
import type { TestResponse } from '../../support/test-service.js';
import { newCustomer, redeem, sessionsIn, TRANSFER, transferBody, transferToken } from '../../support/transfers.js';
import { DAY_SECONDS, useService } from '../../support/use-service.js';

/** Protocol §3.10. */
const MAX_CODES = 60;
const MAX_DEVICES = 20;
const MAX_TRANSFER_SESSIONS = 200;
const MAX_CHAINED_TRANSFERS = 8;
/** A device by transfer that was used within these days is not replaced. */
const USED_DAYS = 30;

const grants = { identity_token: { remember: ['browser', 'refresh_token'] } };
const registry = refreshingRegistry({ grants });
registry.clients = changed(registry.clients, [ACME_SITE], {
  grant_types: ['cookie', 'identity_token', 'refresh_token', 'test_proof'],
});
const environment = { REFRESH_TOKEN_TTL: String(90 * DAY_SECONDS) };
const service = useService({ ...proofExtension, registry, environment });

const transfer = (token: string) => service.post(TRANSFER, transferBody(), bearer(token));
const transferByAgent = (token: string, customer_id: string) =>
  service.post(TRANSFER, transferBody({ bearer_type: 'agent', customer_id }), bearer(token));
const codesIn = (responses: TestResponse[]): string[] => responses.map(({ body }) => body.identity_transfer_token);
const statusesOf = (responses: TestResponse[]) => responses.map(({ status }) => status);

describe('protocol §3.10: the transfer tokens of a customer that are not redeemed', () => {
  it(`are at most ${MAX_CODES}, of its own and of agents together; a further one gets 429, and none is replaced`, async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const agent = await issueAgentToken(service);
    const own = await times(MAX_CODES / 2, () => transfer(access_token));
    const ofAgent = await times(MAX_CODES / 2, () => transferByAgent(agent, entity_id));
    const [first = '', ...codes] = codesIn([...own, ...ofAgent]);
    expectLimited(await transfer(access_token));
    expectLimited(await transferByAgent(agent, entity_id));
    expect((await redeem(service, first)).status).toBe(200);
    codes.push(...codesIn([await transfer(access_token)]));
    expectLimited(await transferByAgent(agent, entity_id));
    const redeemed = await times(codes.length, (index) => redeem(service, codes[index]));
    expect(new Set(statusesOf(redeemed))).toEqual(new Set([200]));
    expect((await transferByAgent(agent, entity_id)).status).toBe(200);
  });

  it('do not include those that have expired, or that have ended with the token of an agent', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const agents = await times(2, () => issueAgentToken(service));
    for (const agent of agents) await times(MAX_CODES / 2, () => transferByAgent(agent, entity_id));
    expectLimited(await transfer(access_token));
    for (const agent of agents) expect((await service.send('DELETE', '/v2/token', bearer(agent))).status).toBe(200);
    expect(new Set(statusesOf(await times(MAX_CODES, () => transfer(access_token))))).toEqual(new Set([200]));
    expectLimited(await transfer(access_token));
    service.clock.advance({ seconds: 3_600 });
    expect((await transfer(access_token)).status).toBe(200);
  });

  it('are those of one customer: another one has its own', async () => {
    const { access_token } = await newCustomer(service);
    await times(MAX_CODES, () => transfer(access_token));
    expectLimited(await transfer(access_token));
    expect((await transfer((await newCustomer(service)).access_token)).status).toBe(200);
  });
});

/** A device by transfer: how it is used, and the customer that it then has. */
type Device = () => Promise<string | undefined>;

/** Redeems a transfer token for a browser or for a refresh token, in turn. */
const redeemFor = (index: number, move: Move) => (index % 2 === 0 ? remember(service, move) : stay(service, move));

function deviceOf(response: TestResponse): Device {
  expect(response.status).toBe(200);
  const cookie = cookieHeader(response);
  let { refresh_token } = response.body;
  return async () => {
    if (!refresh_token) return service.idOf(cookie);
    const { body } = await refreshCustomer(service, refresh_token);
    refresh_token = body.refresh_token;
    return body.entity_id;
  };
}

/** Makes a customer's devices in turn, so that the first one is the oldest. */
async function devicesOf(browser: TestBrowser, count: number): Promise<Device[]> {
  const devices: Device[] = [];
  for (let index = 0; index < count; index++) devices.push(deviceOf(await redeemFor(index, await newMove(browser))));
  return devices;
}

const newMove = async (browser: TestBrowser) => moveOf(service, (await browser.visit()).body.access_token);

function expectTooManyDevices(response: TestResponse): void {
  expectError(response, { status: 429, error: 'temporarily_unavailable', hint: /^remember: .*\bend_sessions\b/ });
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
}

describe('protocol §3.10: the devices of a customer by transfer', () => {
  it(`are at most ${MAX_DEVICES}: a further one gets 429, leaves the code usable and replaces none`, async () => {
    const browser = new TestBrowser(service);
    const { entity_id, access_token } = (await browser.visit()).body;
    const devices = await devicesOf(browser, MAX_DEVICES);
    for (const index of [0, 1]) {
      const move = await newMove(browser);
      expectTooManyDevices(await redeemFor(index, move));
      expectTooManyDevices(await redeemFor(index, move));
      expect((await redeem(service, move.code, { code_verifier: move.verifier })).status).toBe(200);
    }
    for (const use of devices) expect(await use()).toBe(entity_id);
    await endSessions(service, access_token);
    for (const use of devices) expect(await use()).not.toBe(entity_id);
    await devicesOf(browser, 1);
  });

  it(`the one used longest ago is replaced if that was more than ${USED_DAYS} days ago`, async () => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    const devices = await devicesOf(browser, MAX_DEVICES);
    const [oldest, ...others] = [devices[4], ...devices.filter((_, index) => index !== 4)] as [Device, ...Device[]];
    service.passDays(1);
    for (const use of others) expect(await use()).toBe(entity_id);
    service.passDays(USED_DAYS - 1);
    const move = await newMove(browser);
    expectTooManyDevices(await remember(service, move));
    service.passDays(1);
    const next = deviceOf(await remember(service, await newMove(browser)));
    expect(await oldest()).not.toBe(entity_id);
    for (const use of [next, ...others]) expect(await use()).toBe(entity_id);
    expectTooManyDevices(await redeemFor(1, await newMove(browser)));
    // all were used on the same day now, so the one that was made first is replaced
    service.passDays(USED_DAYS + 1);
    const last = deviceOf(await remember(service, await newMove(browser)));
    const [first, ...laterOnes] = others as [Device, ...Device[]];
    expect(await first()).not.toBe(entity_id);
    for (const use of [next, last, ...laterOnes]) expect(await use()).toBe(entity_id);
  });

  it('do not include the browser that created the customer', async () => {
    const browser = new TestBrowser(service);
    const { entity_id } = (await browser.visit()).body;
    const devices = await devicesOf(browser, MAX_DEVICES);
    service.passDays(USED_DAYS + 1);
    for (const use of devices) expect(await use()).toBe(entity_id);
    expectTooManyDevices(await remember(service, await newMove(browser)));
    expect(await service.idOf(browser.cookie as string)).toBe(entity_id);
  });
});

describe('protocol §3.10: the sessions of a customer by transfer or proof', () => {
  const proof = (token: string) => service.post(PROOF, {}, bearer(token));
  const proofByAgent = (token: string, customer_id?: string) => service.post(PROOF, { customer_id }, bearer(token));
  const redeemProof = ({ body }: TestResponse, more: object = {}) =>
    service.post('/v2/customer/token', { grant_type: 'test_proof', client_id: ACME_SITE, code: body.code, ...more });

  it(`are at most ${MAX_TRANSFER_SESSIONS}, unredeemed ones included; a redemption counts nothing`, async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const agent = await issueAgentToken(service);
    expect((await redeem(service, await transferToken(service, access_token))).status).toBe(200);
    const moved = await sessionsIn(service).findOneByOrFail({ customerId: entity_id, kind: 'moved' });
    await addCopies(service, moved, MAX_TRANSFER_SESSIONS - 3);
    const [made, ofAny] = [await proof(access_token), await proofByAgent(agent)];
    const last = await moveOf(service, access_token);
    expectLimited(await transfer(access_token));
    expectLimited(await transferByAgent(agent, entity_id));
    expectLimited(await proof(access_token));
    expectLimited(await proofByAgent(agent, entity_id));
    expectLimited(await redeemProof(ofAny, { result_entity_id: entity_id }));
    expect((await redeemProof(made)).status).toBe(200);
    expectLimited(await proof(access_token));
    const cookie = cookieHeader(await remember(service, last));
    expect(await service.idOf(cookie)).toBe(entity_id);
    expectLimited(await transfer(access_token));
    service.clock.advance({ seconds: DAY_SECONDS });
    const later = (await service.visit(cookie)).body.access_token;
    expect((await transfer(later)).status).toBe(200);
    expect(await redeemProof(await proof(later))).toMatchObject({ status: 200, body: { entity_id } });
  });
});

describe('protocol §3.10: a chain of transfers', () => {
  it(`has at most ${MAX_CHAINED_TRANSFERS}, and an agent begins a chain of its own`, async () => {
    const { entity_id, access_token } = await newCustomer(service);
    let token = access_token;
    for (let depth = 1; depth <= MAX_CHAINED_TRANSFERS; depth++)
      token = (await redeem(service, await transferToken(service, token))).body.access_token;
    expectInvalidGrant(await transfer(token));
    const agent = await issueAgentToken(service);
    const code = (await transferByAgent(agent, entity_id)).body.identity_transfer_token;
    token = (await redeem(service, code)).body.access_token;
    for (let depth = 2; depth <= MAX_CHAINED_TRANSFERS; depth++)
      token = (await redeem(service, await transferToken(service, token))).body.access_token;
    expectInvalidGrant(await transfer(token));
  });
});

describe('protocol §3.10: the end of a session', () => {
  it.each(['Asia/Tokyo', 'America/Los_Angeles'])(
    'does not depend on the time zone of the process: %s',
    async (zone) => {
      const { TZ } = process.env;
      onTestFinished(() => {
        if (TZ === undefined) delete process.env.TZ;
        else process.env.TZ = TZ;
      });
      process.env.TZ = zone;
      expect(new Date(0).getTimezoneOffset()).not.toBe(0);
      const { access_token } = await newCustomer(service);
      const { body } = await redeem(service, await transferToken(service, access_token));
      const code = await transferToken(service, body.access_token);
      service.clock.advance({ seconds: 4 * 3_600 });
      expect((await transfer(body.access_token)).status).toBe(200);
      service.clock.advance({ seconds: 4 * 3_600 + 1 });
      expectInvalidGrant(await redeem(service, code));
    },
  );
});
