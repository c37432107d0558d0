import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { customerOf, GuideSite, runInPage } from '../../../../test/support/guide-site.js';
import { INFO, infoStatus } from '../../../../test/support/transfers.js';

let site: GuideSite;
beforeAll(async () => {
  site = await GuideSite.start();
});
afterEach(() => site.clear());
afterAll(() => site?.stop());

const statusOf = (token: string) => infoStatus(site.service, token);

describe('TokenClient of browser/chat.js on a page of another site', () => {
  it('creates one customer for two tabs that open at the same time, and keeps it after a reload', async () => {
    const tabs = await Promise.all([site.openPage(), site.openPage()]);
    const [first, second] = await Promise.all(tabs.map(customerOf));
    expect(second).toBe(first);
    expect(await customerOf(await site.openPage())).toBe(first);
  });

  it('with browser/groups.js has another customer in each group, and logs out all of them', async () => {
    const tab = await site.openPage();
    const customers = 'return Promise.all(Object.values(groups).map((group) => customer(group)));';
    const before = await runInPage<string[]>(tab, customers);
    expect(new Set(before).size).toBe(2);
    expect(await runInPage(tab, customers)).toEqual(before);
    await runInPage(tab, 'await logOutOfAllGroups();');
    const after = await runInPage<string[]>(tab, customers);
    expect(new Set([...before, ...after]).size).toBe(4);
  });
});

describe('TokenClient', () => {
  it('gets a token if the URL of the service ends with slashes', async () => {
    const token = 'return new exports.TokenClient({ ...exports.options, url: SERVICE + "//" }).get();';
    expect(await statusOf(await runInPage(await site.openPage(), token))).toBe(200);
  });

  it('names CORS and the origin after two requests if the origin is not registered', async () => {
    const tab = await site.openPage('https://shop.example/');
    const failure = 'return tokens.get().catch(({ error, message }) => [error, message]);';
    const hint = /^0 origin_not_registered CORS: .* https:\/\/shop\.example\. Register/;
    expect(await runInPage(tab, failure)).toEqual(['origin_not_registered', expect.stringMatching(hint)]);
    const paths = site.front.seen.map(({ path }) => path);
    expect(paths).toEqual(['/v2/customer/token', '/v2/customer/token', '/.well-known/jwks.json']);
  });

  it('keeps its customer if a move of another tab ends between two requests, so that only the first names a visitor', async () => {
    const tab = await site.openPage();
    const customer = await customerOf(tab);
    const visitorOnce = `const { fetch } = window;
      window.fetch = async (...request) => {
        const response = await fetch(...request);
        if (!request[0].endsWith('/token')) return response;
        window.fetch = fetch;
        return Response.json({ ...(await response.json()), entity_id: 'visitor' });
      };`;
    expect(await runInPage(tab, `${visitorOnce} tokens.discard(await tokens.get()); return customer();`)).toBe(
      customer,
    );
  });

  it('repeats a request that the network has lost, and blames no origin', async () => {
    const tab = await site.openPage();
    const token = await runInPage<string>(tab, 'return tokens.get();');
    await tab.route('**/v2/customer/token', (route) => route.abort(), { times: 1 });
    expect(await runInPage(tab, 'tokens.discard(); return tokens.get();')).not.toBe(token);
    expect(site.front.seen.map(({ path }) => path)).not.toContain('/.well-known/jwks.json');
  });
});

describe('leaveThisBrowser and logOutEverywhere', () => {
  it('leaves on this browser: all its open pages get a token of a new customer, and the old token does not end', async () => {
    const [tab, other] = [await site.openPage(), await site.openPage()];
    const [before, token] = [await customerOf(tab), await runInPage<string>(tab, 'return tokens.get();')];
    expect(await customerOf(other)).toBe(before);
    await runInPage(tab, 'await leaveThisBrowser(tokens);');
    const after = await customerOf(tab);
    expect(after).not.toBe(before);
    await expect.poll(() => customerOf(other)).toBe(after);
    expect(await statusOf(token)).toBe(200);
  });

  it('logs out everywhere: the tokens end, and no browser leads to the customer any more', async () => {
    const [tab, other] = [await site.openPage(), await site.openPage()];
    const [before, token] = [await customerOf(tab), await runInPage<string>(other, 'return tokens.get();')];
    await runInPage(tab, 'await logOutEverywhere(tokens);');
    expect(await statusOf(token)).toBe(401);
    const after = await customerOf(tab);
    expect(after).not.toBe(before);
    await expect.poll(() => customerOf(other)).toBe(after); // the page reloads
  });

  it('endToken and logOutMovedDevices end the tokens of all pages, which get new ones and keep the customer', async () => {
    const [tab, other] = [await site.openPage(), await site.openPage()];
    const [before, token] = [await customerOf(tab), await runInPage<string>(other, 'return tokens.get();')];
    const [ended, next] = await runInPage<[string, string]>(
      tab,
      'const token = await tokens.get(); await endToken(tokens, token); return [token, await tokens.get()];',
    );
    expect([await statusOf(ended), await statusOf(next), await statusOf(token)]).toEqual([401, 200, 401]);
    await runInPage(tab, 'await logOutMovedDevices(tokens);');
    expect(await statusOf(next)).toBe(401);
    for (const page of [tab, other]) expect(await customerOf(page)).toBe(before);
  });
});

describe("credentials: 'include' in a page", () => {
  const statusWithCredentials = (method: string, path: string) =>
    `fetch(SERVICE + '${path}', { method: '${method}', credentials: 'include', headers }).then(({ status }) => status, ({ name }) => name)`;

  it('works for a DELETE of the token, and makes the browser block token info and a transfer', async () => {
    const results = await runInPage(
      await site.openPage(),
      `const headers = { Authorization: 'Bearer ' + (await tokens.get()) };
      return [
        await ${statusWithCredentials('GET', INFO)},
        await ${statusWithCredentials('POST', '/v2/customer/identity_transfer')},
        await ${statusWithCredentials('DELETE', '/v2/customer/token')},
      ];`,
    );
    expect(results).toEqual(['TypeError', 'TypeError', 200]);
  });
});
