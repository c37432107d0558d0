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

  it('endToken ends the token of this page only, and the page keeps its customer', async () => {
    const [tab, other] = [await site.openPage(), await site.openPage()];
    const [before, token] = [await customerOf(tab), await runInPage<string>(other, 'return tokens.get();')];
    const [ended, next] = await runInPage<[string, string]>(
      tab,
      'const token = await tokens.get(); await endToken(tokens, token); return [token, await tokens.get()];',
    );
    expect([await statusOf(ended), await statusOf(next), await statusOf(token)]).toEqual([401, 200, 200]);
    expect(await customerOf(tab)).toBe(before);
  });

  it('logOutMovedDevices ends the tokens of the customer, and this browser keeps the customer', async () => {
    const tab = await site.openPage();
    const [before, token] = [await customerOf(tab), await runInPage<string>(tab, 'return tokens.get();')];
    await runInPage(tab, 'await logOutMovedDevices(tokens);');
    expect(await statusOf(token)).toBe(401);
    const next = await runInPage<string>(tab, 'return tokens.get();');
    expect(await statusOf(next)).toBe(200);
    expect(await customerOf(tab)).toBe(before);
  });

  it('does not log out another customer if the browser has lost its cookies', async () => {
    const tab = await site.openPage();
    const token = await runInPage<string>(tab, 'return tokens.get();');
    await tab.context().clearCookies();
    const logOut = 'return logOutEverywhere(tokens).catch(({ ...fields }) => fields);';
    expect(await runInPage(tab, logOut)).toMatchObject({ status: 400, error: 'moved_browser' });
    expect(await statusOf(token)).toBe(200);
    expect(site.tokenRequests).toBe(1);
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
