import { describe, expect, it } from 'vitest';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { plainRequest, RawConnection } from '../support/raw-http.js';
import type { TestResponse } from '../support/test-service.js';
import { infoStatus, newCustomer, redeem, redeemBody, transferToken } from '../support/transfers.js';
import { serviceOfTest, type UsedService, useService } from '../support/use-service.js';

const HEAD = 'HTTP/1.1\r\nHost: auth.example\r\n';

/** Sends a request on a connection that the service has accepted, and resets the connection at once. */
async function sendAndReset(url: string, path: string, body: object, headers = ''): Promise<void> {
  const connection = await RawConnection.open(url);
  connection.send(`GET /nowhere ${HEAD}\r\n`);
  await expect.poll(() => connection.receivedSoFar).toContain('404');
  const text = JSON.stringify(body);
  connection.send(`POST ${path} ${HEAD}${headers}Content-Length: ${text.length}\r\n\r\n${text}`);
  await connection.sent();
  connection.abort();
}

/** Redeems a code from an IP address of this machine. */
function redeemFrom(localAddress: string, service: UsedService, code: string): Promise<TestResponse> {
  return plainRequest(service.url + TOKEN, { method: 'POST', localAddress }, [JSON.stringify(redeemBody(code))]);
}

function countOf(service: UsedService, event: string): number {
  return service.audit.filter((entry) => entry.event === event).length;
}

describe('the address of a caller that resets its connection', () => {
  const service = useService();

  it.each([
    ['a duplicate from the same network', '127.0.0.1', 0],
    ['a replay from another network', '127.0.0.2', 1],
  ])('makes a second use of the code that the caller redeemed %s', async (_, address, replays) => {
    const code = await transferToken(service, (await newCustomer(service)).access_token);
    await sendAndReset(service.url, TOKEN, redeemBody(code));
    await expect.poll(() => countOf(service, 'transfer_token.redeemed')).toBe(1);
    expect((await redeemFrom(address, service, code)).status).toBe(400);
    expect(countOf(service, 'transfer_token.replayed')).toBe(replays);
  });

  it('makes its own second use of a code from another network a replay, which ends the token of the first use', async () => {
    const code = await transferToken(service, (await newCustomer(service)).access_token);
    const { access_token } = (await redeemFrom('127.0.0.2', service, code)).body;
    await sendAndReset(service.url, TOKEN, redeemBody(code));
    await expect.poll(() => countOf(service, 'transfer_token.replayed')).toBe(1);
    expect(await infoStatus(service, access_token)).toBe(401);
  });

  it('is in the audit event of its failed authentication', async () => {
    await sendAndReset(service.managementUrl, '/admin/clients/a/secret', {}, 'Authorization: Bearer wrong\r\n');
    await expect.poll(() => countOf(service, 'admin.authentication_failed')).toBe(1);
    const [event] = service.audit.filter((entry) => entry.event === 'admin.authentication_failed');
    expect(event?.details).toMatchObject({ ip: '127.0.0.1' });
  });

  it('counts towards the limit of its network', async () => {
    const limited = await serviceOfTest({ environment: { RATE_LIMIT: 'identities=3/3600' } });
    for (let visits = 1; visits <= 3; visits++) {
      await sendAndReset(limited.url, TOKEN, cookieBody());
      await expect.poll(() => countOf(limited, 'identity.created')).toBe(visits);
    }
    expect((await limited.visit()).status).toBe(429);
  });
});

describe('an unknown address, which a trusted proxy has passed on', () => {
  const environment = { TRUST_PROXY: '1' };
  const service = useService({ environment });

  it.each(['unknown', '_hidden', '203.0.113.7.8', '2001:db8::1::2'])(
    'makes a second use of a code a replay, even if both requests have the same text: %s',
    async (text) => {
      const from = { 'x-forwarded-for': text };
      const code = await transferToken(service, (await newCustomer(service)).access_token);
      const { access_token } = (await redeem(service, code, {}, from)).body;
      expect((await redeem(service, code, {}, from)).status).toBe(400);
      expect(await infoStatus(service, access_token)).toBe(401);
    },
  );

  it('is one network for limits, whatever text it has', async () => {
    const limited = await serviceOfTest({ environment: { ...environment, RATE_LIMIT: 'identities=3/3600' } });
    const statuses: number[] = [];
    for (const text of ['unknown', '_hidden', '_other', 'unknown', '203.0.113.7'])
      statuses.push((await limited.post(TOKEN, cookieBody(), { 'x-forwarded-for': text })).status);
    expect(statuses).toEqual([200, 200, 200, 429, 200]);
  });
});
