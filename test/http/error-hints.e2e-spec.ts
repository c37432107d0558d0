import { describe, expect, it } from 'vitest';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { expectInvalidGrant, expectInvalidToken } from '../support/expect-error.js';
import { PUBLIC_SITE } from '../support/test-registry.js';
import { request } from '../support/test-service.js';
import { newCustomer, redeemBody, transferToken } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const service = useService();

describe('protocol §2.12: 401', () => {
  it('names no error in WWW-Authenticate without credentials (RFC 6750 §3.1), and says what is missing', async () => {
    for (const url of [`${service.url}/v2/customer/info`, `${service.managementUrl}/admin/clients`]) {
      const response = await request(url, {});
      expectInvalidToken(response);
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
      expect(response.body.error_hint).toBe('Authorization: missing; send Bearer and the token');
    }
  });

  it('says that %3A must be a colon, and nothing about another token', async () => {
    const { access_token } = await newCustomer(service);
    const hintOf = async (token: string) => {
      const response = await request(`${service.url}/v2/customer/info`, { headers: bearer(token) });
      expectInvalidToken(response);
      return response.body.error_hint;
    };
    expect(await hintOf(access_token.replace(':', '%3A'))).toBe('Authorization: replace %3A by a colon');
    expect(await hintOf(`${access_token}x`)).toBeUndefined();
  });
});

it('protocol §2.12: invalid_grant has the same hint for each cause', async () => {
  const { access_token } = await newCustomer(service);
  const used = await transferToken(service, access_token);
  expect((await service.post(TOKEN, redeemBody(used))).status).toBe(200);
  const unused = await transferToken(service, access_token);
  const hints = new Set();
  for (const body of [
    redeemBody('dev:never-issued-never-issued-never-issued-never-1'),
    redeemBody(used, { redirect_uri: undefined, client_id: PUBLIC_SITE }),
    redeemBody(unused, { code_verifier: 'x'.repeat(43) }),
    redeemBody(used),
  ]) {
    const response = await service.post(TOKEN, body);
    expectInvalidGrant(response);
    hints.add(response.body.error_hint);
  }
  expect([...hints]).toEqual([expect.stringMatching(/^code: unknown, expired, used, .*code_verifier/)]);
});
