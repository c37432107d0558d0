import type { Frame } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { BROWSER_NAME } from '../../../../test/support/browser-launch.js';
import {
  type ClientBrowser,
  ClientPages,
  renewedCustomerOf,
  runIn,
  type Situation,
  WITHOUT_COOKIES,
} from '../../../../test/support/client-pages.js';
import { TOKEN } from '../../../../test/support/cookie-grant.js';
import { refreshCustomer } from '../../../../test/support/customer-refresh.js';
import { temporaryFolder } from '../../../../test/support/project-files.js';
import { ACME } from '../../../../test/support/test-registry.js';
import { infoStatus } from '../../../../test/support/transfers.js';

const folder = temporaryFolder('profiles');
/**
 * Without `Partitioned`, Chromium keeps no cookies of another site, as Firefox does not that blocks third-party
 * cookies.
 */
let pages: ClientPages;
beforeAll(async () => {
  pages = await ClientPages.start(folder, { COOKIE_PARTITIONED: 'false' });
});
afterEach(() => pages.clear());
afterAll(() => pages?.stop());

const storedIn = (frame: Frame) =>
  runIn<Record<string, string>>(
    frame,
    `const item = Object.keys(localStorage).find((name) => name.startsWith('customer-token '));
    return JSON.parse(localStorage.getItem(item) ?? '{}');`,
  );
const tokenOf = (frame: Frame) => runIn<string>(frame, 'return tokens.get();');
const isUsable = async (refreshToken: string) => (await refreshCustomer(pages.service, refreshToken)).status === 200;
/** A page on another site, with a new customer. */
async function openVisitor(browser?: ClientBrowser) {
  const started = browser ?? (await pages.openBrowser());
  const page = await started.open('another site');
  return { browser: started, page, customer: await renewedCustomerOf(page) };
}

describe.each<Situation>(['same site', ...WITHOUT_COOKIES])(
  'a browser that blocks third-party cookies: %s',
  (situation) => {
    it('is one customer on further calls, after a reload and after a restart', async () => {
      const browser = await pages.startProfile();
      const page = await browser.open(situation);
      const customer = await renewedCustomerOf(page);
      expect(await renewedCustomerOf(page)).toBe(customer);
      const key = situation === 'same site' ? 'entityId' : 'refreshToken';
      expect(await storedIn(page)).toHaveProperty(key);
      expect(await infoStatus(pages.service, await tokenOf(page))).toBe(200);
      await page.page().close();
      expect(await renewedCustomerOf(await browser.open(situation))).toBe(customer);
      const restarted = await pages.restart(browser);
      expect(await renewedCustomerOf(await restarted.open(situation))).toBe(customer);
    });

    it('is one customer for two tabs that open at once, and renew at once', async () => {
      const browser = await pages.openBrowser();
      const tabs = [await browser.open(situation), await browser.open(situation)];
      const [first, second] = await Promise.all(tabs.map(renewedCustomerOf));
      expect(second).toBe(first);
      for (let round = 0; round < 3; round++)
        expect(await Promise.all([...tabs, ...tabs].map(renewedCustomerOf))).toEqual(Array(4).fill(first));
    });
  },
);

it.runIf(BROWSER_NAME === 'firefox')(
  'a frame rejects with cookies_blocked in a Firefox that refuses its storage',
  async () => {
    const page = await (await pages.openBrowser()).open('frame');
    const request = (client: string) => `await ${client}.requestToken().catch(({ error }) => error)`;
    const errors = await runIn(page, `return [${request('cookies')}, ${request('tokens')}];`);
    expect(errors).toEqual(['cookies_blocked', 'cookies_blocked']);
  },
);

describe('a page that does not use the mode', () => {
  it.each(WITHOUT_COOKIES)(
    'is a new customer each time in such a browser, and stores nothing: %s',
    async (situation) => {
      const page = await (await pages.openBrowser()).open(situation);
      const ids = await runIn<string[]>(
        page,
        'return [await cookies.requestToken(), await cookies.requestToken()].map(({ entity_id }) => entity_id);',
      );
      expect(new Set(ids).size).toBe(2);
      expect(await runIn(page, 'return Object.keys(localStorage);')).toEqual([]);
    },
  );
});

describe('a browser that keeps the cookies', () => {
  it('keeps its customer when the page begins to use the mode, at the cost of one request once', async () => {
    const page = await (await pages.openBrowser('allowed')).open('another site');
    const customer = await runIn<string>(page, 'return cookies.entityId();');
    pages.front.seen.length = 0;
    expect(await renewedCustomerOf(page)).toBe(customer);
    expect(pages.front.seen).toHaveLength(2);
    expect(await renewedCustomerOf(page)).toBe(customer);
    expect(pages.front.seen).toHaveLength(3);
    expect(await storedIn(page)).toEqual({ entityId: customer });
  });

  it('becomes another customer that stays, when the browser stops to keep the cookies', async () => {
    const browser = await pages.startProfile('allowed');
    const { customer } = await openVisitor(browser);
    const { page, customer: next } = await openVisitor(await pages.restart(browser));
    expect(next).not.toBe(customer);
    expect(await renewedCustomerOf(page)).toBe(next);
  });
});

describe('a customer without cookies', () => {
  it.each(['anonymous', 'refresh_token'])('stays after a lost response to the grant %s', async (grant) => {
    const browser = await pages.openBrowser();
    const page = await browser.open('another site');
    const before = grant === 'anonymous' ? undefined : await renewedCustomerOf(page);
    await page.evaluate(`{
      const send = fetch;
      fetch = async (url, init) => {
        const response = await send(url, init);
        if (globalThis.isLost || !init.body.includes('"${grant}"')) return response;
        globalThis.isLost = true;
        throw new TypeError('lost');
      };
    }`);
    const customer = await renewedCustomerOf(page);
    expect(await page.evaluate('isLost')).toBe(true);
    expect(customer).toBe(before ?? customer);
    expect(await renewedCustomerOf(page)).toBe(customer);
  });

  it('has one successor for each use by four tabs, which may be in processes of their own', async () => {
    const { browser, page, customer } = await openVisitor();
    const tabs = [page, ...(await Promise.all(Array.from({ length: 3 }, () => browser.open('another site'))))];
    const renew = `const seen = [];
      const send = fetch;
      fetch = async (...request) => {
        const response = await send(...request);
        seen.push((await response.clone().json()).refresh_token);
        return response;
      };
      for (let n = 0; n < 15; n++) await tokens.requestToken();
      fetch = send;
      return seen;`;
    const successors = (await Promise.all(tabs.map((tab) => runIn<string[]>(tab, renew)))).flat();
    expect(successors).toHaveLength(60);
    expect(new Set(successors).size, 'a tab that sees an earlier token gets its successor again').toBe(60);
    expect(await renewedCustomerOf(page)).toBe(customer);
  });

  it('stays when a tab is closed between the response and storing it', async () => {
    const { browser, page, customer } = await openVisitor();
    const before = await storedIn(page);
    const response = page.page().waitForResponse(`**${TOKEN}`);
    await page.evaluate('Response.prototype.json = () => new Promise(() => undefined)');
    await runIn(page, 'tokens.discard(); void tokens.get();');
    await response;
    await page.page().close();
    const next = await openVisitor(browser);
    expect(next.customer).toBe(customer);
    expect(await storedIn(next.page)).not.toEqual(before);
    expect(await renewedCustomerOf(next.page)).toBe(customer);
  });

  it('is followed by a new one when its session has ended, and the page is told', async () => {
    const { page, customer } = await openVisitor();
    await runIn(
      page,
      `globalThis.told = []; tokens = new client.TokenClient({ ...options, withoutCookies: 'refresh_token',
      onCustomerChange: (id) => told.push(id) }); await tokens.get();`,
    );
    const { refreshToken } = await storedIn(page);
    await pages.service.post('/v2/customer/revoke', { token: refreshToken, client_id: 'acme-site' });
    const next = await renewedCustomerOf(page);
    expect(next).not.toBe(customer);
    expect(await runIn(page, 'return told;')).toEqual([next]);
    expect(await renewedCustomerOf(page)).toBe(next);
  });
});

describe('leaving without cookies', () => {
  it('leaves on this browser: its pages get a new customer, and a device that got the customer stays', async () => {
    const { browser, page, customer } = await openVisitor();
    const other = await openVisitor(browser);
    expect(other.customer).toBe(customer);
    const [token, { refreshToken }] = [await tokenOf(page), await storedIn(page)];
    const device = await moveFrom(page);
    await runIn(page, 'await client.leaveThisBrowser(tokens);');
    const next = await renewedCustomerOf(page);
    expect(next).not.toBe(customer);
    await expect.poll(() => runIn(other.page, 'return tokens.entityId();')).toBe(next);
    expect(await isUsable(refreshToken as string)).toBe(false);
    expect(await infoStatus(pages.service, token)).toBe(200);
    expect(await isUsable(device)).toBe(true);
  });

  it('costs one request for the next customer, and is possible by a client that does not use the mode', async () => {
    const { page, customer } = await openVisitor();
    const { refreshToken } = await storedIn(page);
    await runIn(
      page,
      `localStorage.setItem('customer-token ${ACME} other ', '{'); await client.leaveThisBrowser(cookies);`,
    );
    expect(await isUsable(refreshToken as string)).toBe(false);
    pages.front.seen.length = 0;
    expect(await renewedCustomerOf(page)).not.toBe(customer);
    expect(pages.front.seen).toHaveLength(1);
  });

  it('logs out everywhere as the first thing that a page does', async () => {
    const first = await (await pages.openBrowser()).open('another site');
    await runIn(first, 'await client.logOutEverywhere(tokens);');
    const { browser, customer } = await openVisitor();
    const page = await browser.open('another site');
    const { refreshToken } = await storedIn(page);
    await runIn(page, 'await client.logOutEverywhere(tokens);');
    expect(await isUsable(refreshToken as string)).toBe(false);
    expect(await renewedCustomerOf(page)).not.toBe(customer);
  });

  it('logs out everywhere: the tokens and devices end, and the customer is gone from this browser', async () => {
    const { page, customer } = await openVisitor();
    const [token, { refreshToken }] = [await tokenOf(page), await storedIn(page)];
    const device = await moveFrom(page);
    await runIn(page, 'await client.logOutEverywhere(tokens);');
    expect(await infoStatus(pages.service, token)).toBe(401);
    for (const each of [device, refreshToken as string]) expect(await isUsable(each)).toBe(false);
    const next = await renewedCustomerOf(page);
    expect(next).not.toBe(customer);
    expect(await renewedCustomerOf(page)).toBe(next);
  });

  it('endToken and logOutMovedDevices end tokens and devices, and the browser keeps the customer', async () => {
    const { page, customer } = await openVisitor();
    const device = await moveFrom(page);
    const token = await runIn<string>(
      page,
      'const token = await tokens.get(); await client.endToken(tokens, token); return token;',
    );
    expect(await infoStatus(pages.service, token)).toBe(401);
    expect(await renewedCustomerOf(page)).toBe(customer);
    await runIn(page, 'await client.logOutMovedDevices(tokens);');
    expect(await isUsable(device)).toBe(false);
    expect(await renewedCustomerOf(page)).toBe(customer);
  });

  it('leaves all groups of the organization', async () => {
    const { page } = await openVisitor();
    const inGroup = `const group = new client.TokenClient({ ...options, groupId: 'sales', withoutCookies: 'refresh_token' });
      return [await group.entityId(), (await group.requestToken()).entity_id, await tokens.entityId()];`;
    const [group, again, without] = await runIn<string[]>(page, inGroup);
    expect(again).toBe(group);
    expect(without).not.toBe(group);
    await runIn(page, 'await client.leaveThisBrowser(tokens);');
    const left = await runIn<string[]>(page, inGroup);
    expect(left).not.toContain(group);
    expect(left).not.toContain(without);
  });
});

/** Moves the customer of a page to a device with a refresh token of its own. */
async function moveFrom(page: Frame): Promise<string> {
  return runIn(
    page,
    `const verifier = client.createVerifier();
    const { transferToken } = await client.approveMove(tokens, tokens.clientId, await client.challengeOf(verifier));
    const proof = { grant_type: 'identity_token', code: transferToken, code_verifier: verifier };
    const body = { ...proof, client_id: tokens.clientId, remember: 'refresh_token' };
    return (await client.exchangeOnce(options.url + '/v2/customer/token', body, () => undefined)).refresh_token;`,
  );
}

describe('a move to a browser without cookies', () => {
  const finish = (page: Frame, transferToken: string, replace = false) =>
    runIn<string>(
      page,
      `const device = new client.NewBrowser(tokens);
      return (await device.finishMove('${transferToken}', { replace: ${replace} })).entity_id;`,
    );
  const begin = (page: Frame) => runIn<string>(page, 'return new client.NewBrowser(tokens).beginMove();');
  const approve = (page: Frame, challenge: string) =>
    runIn<string>(page, `return (await client.approveMove(tokens, tokens.clientId, '${challenge}')).transferToken;`);

  it.each(WITHOUT_COOKIES)(
    'keeps the customer in a browser that has never asked for a token: %s',
    async (situation) => {
      const { page: old, customer } = await openVisitor();
      const browser = await pages.openBrowser();
      const page = await browser.open(situation);
      expect(await finish(page, await approve(old, await begin(page)))).toBe(customer);
      expect(await renewedCustomerOf(page)).toBe(customer);
      expect(await renewedCustomerOf(await browser.open(situation))).toBe(customer);
      expect(await renewedCustomerOf(old)).toBe(customer);
    },
  );

  it('asks before it replaces the customer of the browser, and then keeps the moved one', async () => {
    const { page: old, customer } = await openVisitor();
    const { page, customer: visitor } = await openVisitor(await pages.openBrowser());
    const transferToken = await approve(old, await begin(page));
    await expect(finish(page, transferToken)).rejects.toThrow('identity_conflict');
    expect(await renewedCustomerOf(page)).toBe(visitor);
    const { refreshToken } = await storedIn(page);
    expect(await finish(page, transferToken, true)).toBe(customer);
    expect(await isUsable(refreshToken as string), 'the replaced token is forgotten').toBe(false);
    expect(await renewedCustomerOf(page)).toBe(customer);
    const logOut = 'return client.logOutEverywhere(tokens).catch(({ error }) => error);';
    expect(await runIn(page, logOut)).toBe('moved_browser');
    expect(await renewedCustomerOf(old)).toBe(customer);
  });

  it('uses the cookies of a browser that keeps them', async () => {
    const { page: old, customer } = await openVisitor();
    const page = await (await pages.openBrowser('allowed')).open('another site');
    expect(await finish(page, await approve(old, await begin(page)))).toBe(customer);
    expect(await storedIn(page)).toEqual({ entityId: customer });
    expect(await renewedCustomerOf(page)).toBe(customer);
  });
});
