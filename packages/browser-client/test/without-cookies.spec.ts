import { TokenClient, type TokenClientOptions } from 'browser-client';
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
    return Response.json({ access_token: 'any', entity_id: `customer-${requests.length}`, expires_in: 60 });
  });
  const tokens = new TokenClient({ ...IDS, ...options });
  for (let request = 0; request < 2; request++) await tokens.requestToken();
  return requests;
}

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
    [
      'has another text in the storage',
      () => {
        useLocks();
        localStorage.setItem(ITEM, '{');
      },
    ],
  ])('sends the same with withoutCookies if the browser %s', async (_what, prepare) => {
    useLocks();
    const without = await requestsOf();
    vi.stubGlobal('navigator', {});
    prepare();
    expect(await requestsOf(ON)).toEqual(without);
  });

  it('sends the anonymous grant after two cookie grants of different customers', async () => {
    useLocks();
    const bodies = (await requestsOf(ON)).map((request) => JSON.parse((request as [string, { body: string }])[1].body));
    expect(bodies.map(({ grant_type }) => grant_type).slice(0, 3)).toEqual(['cookie', 'cookie', 'anonymous']);
  });
});
