import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { customerOf, GuideSite, runInPage } from '../../../../test/support/guide-site.js';

/** No further token within this time, so that a test need not wait. */
const ONE_TOKEN_PER_HOUR = { RATE_LIMIT: 'tokens=1/3600' };
/** Moves the clock of the page into the last minute of a token. */
const NEARLY_EXPIRED = 'const now = Date.now; Date.now = () => now() + (8 * 3600 - 30) * 1000;';

let site: GuideSite;

describe('TokenClient of browser/chat.js on a page of another site', () => {
  beforeAll(async () => {
    site = await GuideSite.start();
  });
  afterEach(() => site.clear());
  afterAll(() => site?.stop());

  it('requests one token for calls that begin at the same time', async () => {
    const tab = await site.openPage();
    const customers = await runInPage<string[]>(
      tab,
      'return Promise.all(Array.from({ length: 5 }, () => customer()));',
    );
    expect(customers).toEqual(Array(5).fill(customers[0]));
    expect(site.tokenRequests).toBe(1);
  });

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

  it('renews a token in its last minute', async () => {
    const tab = await site.openPage();
    const before = await customerOf(tab);
    expect(await runInPage(tab, `${NEARLY_EXPIRED} return customer();`)).toBe(before);
    expect(site.tokenRequests).toBe(2);
  });

  it('rejects with the fields of an error that a repetition does not cure, after one request', async () => {
    const options = "{ url: SERVICE, clientId: 'nobody', organizationId: 'nowhere' }";
    const fields = await runInPage(
      await site.openPage(),
      `return new TokenClient(${options}).get().catch(({ ...fields }) => fields);`,
    );
    expect(fields).toMatchObject({
      status: 400,
      error: 'invalid_request',
      hint: expect.stringContaining('organization_id'),
      requestId: expect.stringMatching(/./),
    });
    expect(site.tokenRequests).toBe(1);
  });
});

describe('TokenClient while the service rejects its requests', () => {
  afterEach(() => site?.stop());

  it('returns the old token while it is valid, and asks again only after Retry-After', async () => {
    site = await GuideSite.start(ONE_TOKEN_PER_HOUR);
    const tab = await site.openPage();
    const [before, after, again] = await runInPage<string[]>(
      tab,
      `const before = await tokens.get(); ${NEARLY_EXPIRED} return [before, await tokens.get(), await tokens.get()];`,
    );
    expect([after, again]).toEqual([before, before]);
    expect(site.tokenRequests).toBe(2);
  });

  it('does not return a token that the API has rejected, and rejects at once if the wait is long', async () => {
    site = await GuideSite.start(ONE_TOKEN_PER_HOUR);
    const fields = await runInPage<Record<string, unknown>>(
      await site.openPage(),
      'tokens.discard(await tokens.get()); return tokens.get().catch(({ ...fields }) => fields);',
    );
    expect(fields).toMatchObject({ status: 429, error: 'temporarily_unavailable' });
    expect(fields.requestId).toMatch(/./);
    expect(fields.retryAfterSeconds).toBeGreaterThan(60);
    expect(site.tokenRequests).toBe(2);
  });
});

describe('TokenClient in a browser that drops the cookies of the service only', () => {
  afterEach(() => site?.stop());

  it('rejects with cookies_blocked after the 401 of an API, and does not reload the page forever', async () => {
    site = await GuideSite.start({ COOKIE_PARTITIONED: 'false' }, undefined, 'blocked');
    const tab = await site.openPage();
    await tab.route('**/chats', (route) => route.fulfill({ status: 401 }));
    const call = () =>
      runInPage(tab, "return tokens.fetch('/chats').then(({ status }) => status, ({ error }) => error);");
    const outcomes: unknown[] = [];
    tab.on('load', () => void call().then((outcome) => outcomes.push(outcome)));
    await tab.reload();
    await expect.poll(() => outcomes).toEqual(['cookies_blocked']);
    expect(await call()).toBe('cookies_blocked');
    expect(outcomes).toHaveLength(1);
  });
});
