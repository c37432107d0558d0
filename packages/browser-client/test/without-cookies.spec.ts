import { TokenClient, type TokenClientOptions } from '@customer-authorization/browser-client';
import { describe, expect, it, vi } from 'vitest';
import { stubPageGlobals } from '../../../test/support/stubbed-pages.js';

const IDS = { url: 'https://any.example', clientId: 'site', organizationId: 'acme' };
const COOKIE_GRANT = '{"grant_type":"cookie","response_type":"token","client_id":"site","organization_id":"acme"}';
const ITEM = 'customer-token acme site ';

stubPageGlobals();

/** The requests of two tokens, each of which is for another customer. */
async function requestsOf(options: Partial<TokenClientOptions> = {}): Promise<unknown[]> {
  const requests: unknown[] = [];
  vi.stubGlobal('fetch', async (url: string, { signal, ...init }: RequestInit) => {
    requests.push([url, init]);
    const customer = { entity_id: `customer-${requests.length}`, refresh_token: 'any' };
    return Response.json({ access_token: 'any', expires_in: 60, ...customer });
  });
  const tokens = new TokenClient({ ...IDS, ...options });
  for (let request = 0; request < 2; request++) await tokens.requestToken();
  return requests;
}

const grantsOf = (requests: unknown[]) =>
  requests.map((request) => JSON.parse((request as [string, { body: string }])[1].body).grant_type);
const ON = { withoutCookies: 'refresh_token' } as const;
const useLocks = () =>
  vi.stubGlobal('navigator', { locks: { request: (_name: string, work: () => Promise<unknown>) => work() } });
const refuse = () => {
  throw new DOMException('Access is denied', 'SecurityError');
};
const refuseStorage = (part: 'getItem' | 'setItem') => {
  useLocks();
  vi.stubGlobal('localStorage', { ...localStorage, [part]: refuse });
};

describe('a token client', () => {
  it('sends the cookie grant alone if the page does not use withoutCookies', async () => {
    useLocks();
    const init = { method: 'POST', headers: {}, body: COOKIE_GRANT, credentials: 'include' };
    expect(await requestsOf()).toEqual(Array(2).fill([`${IDS.url}/v2/customer/token`, init]));
    expect(localStorage.getItem(ITEM)).toBeNull();
  });

  it.each<[what: string, prepare: () => void]>([
    ['has no locks', () => undefined],
    ['refuses to read the storage', () => refuseStorage('getItem')],
    ['refuses to write the storage', () => refuseStorage('setItem')],
  ])('sends the same with withoutCookies if the browser %s', async (_what, prepare) => {
    useLocks();
    const without = await requestsOf();
    vi.stubGlobal('navigator', {});
    prepare();
    expect(await requestsOf(ON)).toEqual(without);
  });

  it.each(['{}', '{', 'null', '7'])(
    'sends the anonymous grant once the cookies are dropped, also after the item %s',
    async (text) => {
      useLocks();
      localStorage.setItem(ITEM, text);
      const grants = ['cookie', 'cookie', 'cookie', 'anonymous', 'refresh_token'];
      expect(grantsOf(await requestsOf(ON))).toEqual(grants);
      localStorage.setItem(ITEM, '{"isDropped":true}');
      expect(grantsOf(await requestsOf(ON))).toEqual(['anonymous', 'refresh_token']);
    },
  );

  it('sends nothing to a backend that only the storage names', async () => {
    useLocks();
    localStorage.setItem(ITEM, '{"isDropped":true,"isUser":true,"backendUrl":"https://evil.example"}');
    const send = vi.fn();
    vi.stubGlobal('fetch', send);
    await expect(new TokenClient({ ...IDS, ...ON }).get()).rejects.toMatchObject({ error: 'signed_out' });
    expect(send).not.toHaveBeenCalled();
  });

  it('stores no response without a refresh token', async () => {
    useLocks();
    const text = '{"isDropped":true,"refreshToken":"any","clientId":"site"}';
    localStorage.setItem(ITEM, text);
    vi.stubGlobal('fetch', async () => Response.json({ access_token: 'any', entity_id: 'any', expires_in: 60 }));
    const tokens = new TokenClient({ ...IDS, ...ON });
    await expect(tokens.requestToken({ maxAttempts: 1 })).rejects.toMatchObject({ error: 'no_response' });
    expect(localStorage.getItem(ITEM)).toBe(text);
  });
});
