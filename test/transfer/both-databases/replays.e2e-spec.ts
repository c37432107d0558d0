import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase } from '../../../packages/conformance-kit/src/migrated-schema.js';
import type { TestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { ACME_NATIVE_FORM, exchangeNativeCode, pkce } from '../../support/agent-tokens.js';
import { AgentBrowser, FOR_NATIVE, redirected } from '../../support/authorization-page.js';
import { expectInvalidGrant } from '../../support/expect-error.js';
import { successfulOf, times } from '../../support/races.js';
import { testRegistry } from '../../support/test-registry.js';
import { startTestService, type TestService } from '../../support/test-service.js';
import { ageRotation, infoStatus, newCustomer, redeem, transferToken } from '../../support/transfers.js';

const registry = testRegistry();
/**
 * The clock of the second process is this far ahead. Whether a second use is a duplicate must not depend on the clocks
 * of processes.
 */
const AHEAD_SECONDS = 30;

let database: TestDatabase;
let service: TestService;
let ahead: TestService;
beforeAll(async () => {
  database = await createTestDatabase();
  // TRUST_PROXY lets each request name its own IP address
  const options = { registry, database, environment: { TRUST_PROXY: '1' } };
  service = await startTestService(options);
  ahead = await startTestService(options);
  ahead.clock.advance({ seconds: AHEAD_SECONDS });
});
afterEach(() => service.clock.reset());
afterAll(async () => {
  await ahead?.stop();
  await service?.stop();
  await database?.remove();
});

/** Headers of a request from an IP address. A network is one IPv4 address or one IPv6 /64. */
const from = (ip: string) => ({ 'x-forwarded-for': ip });
const exchange = (at: TestService, code: string, ip: string) => redeem(at, code, {}, from(ip));

describe('a second use of a transfer token', () => {
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

  it('never ends the winner’s token when duplicates race in one network, with clocks 30 s apart', async () => {
    const { access_token } = await newCustomer(service);
    for (let round = 0; round < 10; round++) {
      const code = await transferToken(service, access_token);
      const responses = await times(20, (n) => exchange(n % 2 ? service : ahead, code, '203.0.113.7'));
      const [winner, ...more] = successfulOf(responses);
      expect(winner).toBeDefined();
      expect(more).toEqual([]);
      expect(await infoStatus(ahead, winner?.body.access_token)).toBe(200);
    }
  });

  it('always ends the winner’s token when one of the racing uses comes from another network', async () => {
    const { access_token } = await newCustomer(service);
    for (let round = 0; round < 10; round++) {
      const code = await transferToken(service, access_token);
      const responses = await times(6, (n) => exchange(n % 2 ? service : ahead, code, `203.0.113.${n === 3 ? 9 : 7}`)); // one of six comes from another address
      const [winner, ...more] = successfulOf(responses);
      expect(winner).toBeDefined();
      expect(more).toEqual([]);
      expect(await infoStatus(service, winner?.body.access_token)).toBe(401);
    }
  });
});

describe('a refresh token of a client without a secret', () => {
  const NETWORK = from('203.0.113.7');

  async function firstRefreshToken(): Promise<string> {
    const browser = new AgentBrowser(service);
    const { verifier, asked } = pkce();
    let response = await browser.authorize({ ...FOR_NATIVE, ...asked });
    if (response.status === 200) response = await browser.submit(response, { decision: 'allow' }, '/consent');
    const { code } = redirected(response).parameters;
    return (await exchangeNativeCode(service, code as string, verifier, NETWORK)).body.refresh_token;
  }
  const use = (token: string, headers: Record<string, string>, at = service) =>
    at.post('/v2/token', { grant_type: 'refresh_token', refresh_token: token, ...ACME_NATIVE_FORM }, headers);

  it('may be sent again from the network of the first use', async () => {
    const token = await firstRefreshToken();
    const lost = await use(token, NETWORK); // the client never receives this response
    const again = await use(token, NETWORK, ahead);
    expect([lost.status, again.status]).toEqual([200, 200]);
    expect(again.body.refresh_token).toBe(lost.body.refresh_token);
    expect((await use(again.body.refresh_token, NETWORK)).status).toBe(200);
  });

  it('ends its family when it is sent again from another network', async () => {
    const token = await firstRefreshToken();
    const next = (await use(token, NETWORK)).body.refresh_token;
    await ageRotation(service, token, 31);
    expectInvalidGrant(await use(token, from('203.0.113.8')));
    expectInvalidGrant(await use(next, NETWORK));
  });

  it('may be used from another network when it was never used before', async () => {
    const token = await firstRefreshToken();
    const next = (await use(token, NETWORK)).body.refresh_token;
    await ageRotation(service, token, 600); // as if the rotation were 10 minutes ago
    expect((await use(next, from('198.51.100.1'))).status).toBe(200);
  });
});
