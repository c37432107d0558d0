import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { REQUESTS_PER_RACE, race } from '../../../packages/conformance-kit/src/race.js';
import {
  createTestDatabase,
  onMariadb,
  type TestDatabase,
} from '../../../packages/conformance-kit/src/test-database.js';
import { sha256 } from '../../../src/platform/secret.js';
import { IS_NIGHTLY } from '../../nightly.js';
import { AS_BACKEND, agentTokenBody, refresh } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { BACKEND_CALLBACK } from '../../support/authorization-page.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { expectInvalidGrant, expectUnavailable } from '../../support/expect-error.js';
import { type LossyProxy, startLossyProxy } from '../../support/lossy-proxy.js';
import { successfulOf, times, winnerOf } from '../../support/races.js';
import { startTestService, type TestService } from '../../support/test-service.js';
import {
  authorizationCode,
  infoStatus,
  newCustomer,
  redeem,
  sessionsIn,
  transferToken,
} from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const CODE_COUNT = IS_NIGHTLY ? 20 : 4;

/**
 * The clock of a second process is this far ahead. Whether a second use is a duplicate must not depend on the clocks of
 * processes.
 */
const AHEAD_SECONDS = 30;

// TRUST_PROXY lets each request name its own IP address
const environment = { TRUST_PROXY: '1' };
const service = useService({ environment });
/** A transfer token of a new customer, which has at most 60 of them. */
const newCode = async () => transferToken(service, (await newCustomer(service)).access_token);

describe('protocol §3.6, in one process', () => {
  // On a busy machine a race can take longer than the 2 s in which a second use is a duplicate (protocol §3.7).
  beforeEach(() => void vi.spyOn(service.clock, 'now').mockReturnValue(service.clock.now()));

  it('each of 3 authorization codes, raced 30 ways, has one winner, whose tokens stay valid', async () => {
    for (let done = 0; done < 3; done++) {
      const code = await authorizationCode(service);
      const form = { grant_type: 'authorization_code', code, redirect_uri: BACKEND_CALLBACK, ...AS_BACKEND };
      const { body } = winnerOf(await race([service], '/v2/token', JSON.stringify(form), 30));
      expect((await service.post(TOKEN, agentTokenBody(), bearer(body.access_token))).status).toBe(200);
      expect((await refresh(service, body.refresh_token)).status).toBe(200);
    }
  });

  it('attempts with a wrong code verifier do not stop the right attempt from winning', async () => {
    for (let done = 0; done < CODE_COUNT; done++) {
      const code = await newCode();
      const wrong = times(REQUESTS_PER_RACE, () => redeem(service, code, { code_verifier: 'v'.repeat(43) }));
      expect((await redeem(service, code)).status).toBe(200);
      for (const response of await wrong) expectInvalidGrant(response);
    }
  });
});

describe.runIf(onMariadb)('protocol §3.6, when a database response is lost', () => {
  let database: TestDatabase;
  let proxy: LossyProxy;
  let cutOff: TestService;
  let token: string;
  beforeAll(async () => {
    database = await createTestDatabase();
    proxy = await startLossyProxy(database.url);
    cutOff = await startTestService({ database, environment: { DATABASE_URL: proxy.through(database.url) } });
    token = (await newCustomer(cutOff)).access_token;
  });
  afterAll(async () => {
    await cutOff?.stop();
    await proxy?.close();
    await database?.remove();
  });

  // The lookup contains the hash of the code, and the redemption the id of its session.
  it.each([
    ['to the lookup of the code: nothing has changed, and the code can be exchanged again', 'codeHash', 200],
    ['to the redemption: the code may be used, and a second use of this code then gets no token', 'id', 400],
  ] as const)('%s', async (_, column, second) => {
    const code = await transferToken(cutOff, token);
    const session = await sessionsIn(cutOff).findOneByOrFail({ codeHash: sha256(code) });
    const before = proxy.lost;
    proxy.dropResponses(session[column] as string, [1]);
    expectUnavailable(await redeem(cutOff, code));
    expect(proxy.lost - before).toBe(1);
    const again = await redeem(cutOff, code);
    expect(again.status).toBe(second);
    if (second === 400) expectInvalidGrant(again);
    else expect(await infoStatus(cutOff, again.body.access_token)).toBe(200);
    expect(await infoStatus(cutOff, token)).toBe(200);
  });
});

/** Headers of a request from an IP address. A network is one IPv4 address or one IPv6 /64. */
const from = (ip: string) => ({ 'x-forwarded-for': ip });
const exchange = (at: TestService, code: string, ip: string) => redeem(at, code, {}, from(ip));

describe('protocol §3.7: a second use of a transfer token', () => {
  const ahead = useService(() => ({ database: service.database, environment }));
  beforeEach(() => ahead.clock.advance({ seconds: AHEAD_SECONDS }));

  it.each([
    ['ends nothing', 'the same IPv4 address', '203.0.113.7', '203.0.113.7', 200],
    ['ends nothing', 'the same IPv4 address written as IPv6', '203.0.113.7', '::ffff:203.0.113.7', 200],
    ['ends nothing', 'the same IPv6 /64', '2001:db8:1:2::7', '2001:db8:1:2:ffff::8', 200],
    ['ends the token of the first use', 'another IPv4 address', '203.0.113.7', '203.0.113.8', 401],
    ['ends the token of the first use', 'another IPv6 /64', '2001:db8:1:2::7', '2001:db8:1:3::7', 401],
  ])('%s when it comes at once from %s', async (_outcome, _network, first, second, status) => {
    const code = await transferToken(service, (await newCustomer(service)).access_token);
    const { status: firstStatus, body } = await exchange(service, code, first);
    expect(firstStatus).toBe(200);
    expectInvalidGrant(await exchange(ahead, code, second));
    expect(await infoStatus(service, body.access_token)).toBe(status);
  });

  /** Uses a code several times at once, in both processes, and returns the token of the winner. */
  async function raceFrom(ipOf: (use: number) => string, uses: number): Promise<string> {
    const code = await newCode();
    const responses = await times(uses, (n) => exchange(n % 2 ? service : ahead, code, ipOf(n)));
    const [winner, ...more] = successfulOf(responses);
    expect(winner).toBeDefined();
    expect(more).toEqual([]);
    return winner?.body.access_token;
  }

  it('never ends the winner’s token when duplicates race in one network, with clocks 30 s apart', async () => {
    for (let round = 0; round < 5; round++)
      expect(await infoStatus(ahead, await raceFrom(() => '203.0.113.7', 20))).toBe(200);
  });

  it('always ends the winner’s token when one of the racing uses comes from another network', async () => {
    for (let round = 0; round < 5; round++)
      expect(await infoStatus(service, await raceFrom((n) => `203.0.113.${n === 3 ? 9 : 7}`, 6))).toBe(401);
  });
});
