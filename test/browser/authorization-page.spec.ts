import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import axe from 'axe-core';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { pkce } from '../support/agent-tokens.js';
import { ApplicationSite } from '../support/application-site.js';
import { FOR_CODE, FOR_NATIVE, FOR_PUBLIC, FOR_TOKEN, type Query, queryOf } from '../support/authorization-page.js';
import { type HttpsProxy, startHttpsProxy } from '../support/https-proxy.js';
import { ACME_AGENT, ACME_PAGE, PUBLIC_ORIGIN, testRegistry } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';

const AUTH = 'https://auth.example';
const HOME = 'https://app.elsewhere.example/home';
/** A folder for pictures of all pages, for a person to look at. */
const SCREENSHOTS = process.env.SCREENSHOTS;

const registry = testRegistry();
registry.clients.push({
  client_id: 'long',
  name: 'Donaudampfschifffahrtsgesellschaftskapitänsmützenverwaltung for everybody',
  ...{ client_type: 'web', redirect_uris: [`${PUBLIC_ORIGIN}/`], scopes: ['customers:own', 'reports:read'] },
});
registry.agents[0] = { ...registry.agents[0], scopes: ['customers:own', 'reports:read'] };
const FOR_LONG: Query = { ...FOR_PUBLIC, client_id: 'long', prompt: 'consent' };

let service: TestService;
let front: HttpsProxy;
let backend: ApplicationSite;
let browser: Browser;
const contexts: BrowserContext[] = [];
/** What Chromium has complained of, and addresses beside ours that a page asked for. */
const complaints: string[] = [];

beforeAll(async () => {
  service = await startTestService({ registry });
  front = await startHttpsProxy('auth.example', service.url);
  backend = await ApplicationSite.start('backend.acme.example', HOME);
  browser = await chromium.launch({
    executablePath: process.env.TEST_CHROMIUM as string,
    chromiumSandbox: false, // there is none for root, and the pages are ours
    args: [
      '--disable-gpu',
      `--host-resolver-rules=MAP backend.acme.example 127.0.0.1:${backend.port}, MAP * 127.0.0.1:${front.port}`,
    ],
  });
});
afterAll(async () => {
  await browser?.close();
  await backend?.stop();
  await front?.stop();
  await service?.stop();
});
afterEach(async () => {
  for (const context of contexts.splice(0)) await context.close();
  expect(complaints.splice(0)).toEqual([]);
});

async function openWindow(options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, ...options });
  contexts.push(context);
  context.on('console', (message) => {
    // that a status is 400 is no complaint
    if (message.type() === 'error' && !/status of 4\d\d/.test(message.text())) complaints.push(message.text());
  });
  return context.newPage();
}

async function openPage(parameters: Query, options: BrowserContextOptions = {}): Promise<Page> {
  const page = await openWindow(options);
  await page.goto(addressOf(parameters));
  return page;
}

function addressOf(parameters: Query): string {
  return `${AUTH}/?${queryOf(parameters)}`;
}

async function signIn(page: Page, { email, password } = ACME_AGENT): Promise<void> {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** The parameters with which the browser has come to an address. */
async function arrivedAt(page: Page, address: string): Promise<Record<string, string>> {
  await page.waitForURL((url) => url.href.startsWith(address));
  const { search, hash } = new URL(page.url());
  return Object.fromEntries(new URLSearchParams(hash.slice(1) || search));
}

describe('an agent in a real browser', () => {
  it('signs in by keyboard alone, and sees where the keyboard is', async () => {
    const page = await openPage({ ...FOR_TOKEN, state: 'a b' });
    const focused = () => page.locator(':focus');
    expect(await focused().getAttribute('id')).toBe('email');
    await page.keyboard.type(ACME_AGENT.email);
    for (const next of ['password', null]) {
      await page.keyboard.press('Tab');
      expect(await focused().getAttribute('id')).toBe(next);
      expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
      if (next) await page.keyboard.type(ACME_AGENT.password);
    }
    await page.keyboard.press('Enter');
    expect(await arrivedAt(page, `${ACME_PAGE}#`)).toMatchObject({
      ...{ access_token: expect.stringMatching(/^dev:/), token_type: 'Bearer', scope: 'customers:own' },
      ...{ state: 'a b', iss: AUTH },
    });
  });

  it('is told of a wrong password, keeps the email, and may try again', async () => {
    const page = await openPage(FOR_TOKEN);
    await signIn(page, { ...ACME_AGENT, password: 'wrong' });
    expect(await page.getByRole('alert').textContent()).toBe('This email and password do not belong together.');
    expect(await page.title()).toBe('Problem: Sign in');
    expect(await page.getByLabel('Email').inputValue()).toBe(ACME_AGENT.email);
    expect(await page.getByLabel('Password').inputValue()).toBe('');
    expect(await page.locator(':focus').getAttribute('id')).toBe('password');
    await page.keyboard.type(ACME_AGENT.password);
    await page.keyboard.press('Enter');
    expect(await arrivedAt(page, ACME_PAGE)).toHaveProperty('access_token');
  });

  it('is asked for consent once, by keyboard too', async () => {
    const page = await openPage(FOR_PUBLIC);
    await signIn(page);
    await page.getByRole('heading', { name: 'Widget for everybody' }).waitFor();
    await page.keyboard.press('Tab');
    expect(await page.locator(':focus').textContent()).toBe('Allow');
    await page.keyboard.press('Enter');
    expect(await arrivedAt(page, `${PUBLIC_ORIGIN}/#`)).toHaveProperty('access_token');
    await page.goto(addressOf(FOR_PUBLIC));
    expect(await arrivedAt(page, `${PUBLIC_ORIGIN}/#`)).toHaveProperty('access_token');
  });

  it('may say no, and may sign out', async () => {
    const page = await openPage({ ...FOR_LONG, state: 's' });
    await signIn(page);
    await page.getByRole('button', { name: 'Deny' }).click();
    expect(await arrivedAt(page, `${PUBLIC_ORIGIN}/#`)).toMatchObject({ error: 'access_denied', state: 's' });
    await page.goto(addressOf(FOR_LONG));
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
    await page.goto(addressOf(FOR_LONG));
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });

  it('comes with a code to a callback that sends it on to another origin', async () => {
    const page = await openPage({ ...FOR_CODE, state: 's' });
    await signIn(page);
    expect(await arrivedAt(page, `${HOME}/callback?`)).toMatchObject({
      code: expect.any(String),
      state: 's',
      iss: AUTH,
    });
  });

  it('is handed to a native application under its private scheme', async () => {
    const page = await openPage({ ...FOR_NATIVE, ...pkce().asked });
    const handed = page.waitForEvent('requestfailed', (request) => request.url().startsWith('example.acme:'));
    await signIn(page);
    await page.getByRole('button', { name: 'Allow' }).click();
    expect((await handed).url()).toMatch(/^example\.acme:\/callback\?code=dev%3A/);
    complaints.splice(0); // Chromium says that no application of this machine knows the scheme
  });

  it('needs no JavaScript', async () => {
    const page = await openPage(FOR_LONG, { javaScriptEnabled: false });
    await signIn(page, { ...ACME_AGENT, password: 'wrong' });
    await page.getByRole('alert').waitFor();
    await signIn(page);
    await page.getByRole('button', { name: 'Allow' }).click();
    expect(await arrivedAt(page, `${PUBLIC_ORIGIN}/#`)).toHaveProperty('access_token');
  });

  it('finds no page in a frame', async () => {
    const page = await openWindow();
    await page.goto(ACME_PAGE);
    await page.setContent(`<iframe src="${addressOf(FOR_TOKEN)}"></iframe>`);
    await expect.poll(() => complaints.join()).toMatch(/frame-ancestors|X-Frame-Options/);
    expect(await page.frames()[1]?.locator('#email').count()).toBe(0);
    complaints.splice(0);
  });

  it('meets nothing of any other address on the pages', async () => {
    const page = await openWindow();
    const hosts = new Set<string>();
    page.on('request', (request) => hosts.add(new URL(request.url()).host));
    await page.goto(addressOf(FOR_LONG));
    await signIn(page);
    await page.getByRole('button', { name: 'Deny' }).waitFor();
    expect([...hosts]).toEqual(['auth.example']);
  });
});

describe('flow=button', () => {
  /** A page of an application that opens ours in a window of its own, and notes what it is told. */
  const openFrom = async (application: string, parameters: Query): Promise<[Page, Page]> => {
    const opener = await openWindow();
    await opener.goto(application);
    const popup = opener.waitForEvent('popup');
    await opener.evaluate(`
      told = [];
      addEventListener('message', ({ data, origin }) => told.push({ data, origin }));
      void open(${JSON.stringify(addressOf(parameters))}, 'sign-in', 'popup,width=480,height=640');
    `);
    return [opener, await popup];
  };
  const told = (opener: Page) => opener.evaluate('told');

  it('tells the opener, after signing in and consent, and closes the window', async () => {
    const [opener, popup] = await openFrom(`${PUBLIC_ORIGIN}/`, { ...FOR_LONG, flow: 'button', state: '</script>"' });
    await signIn(popup, { ...ACME_AGENT, password: 'wrong' });
    await signIn(popup);
    const closed = popup.waitForEvent('close');
    await popup.getByRole('button', { name: 'Allow' }).click();
    await closed;
    const data = {
      ...{ access_token: expect.stringMatching(/^dev:/), token_type: 'Bearer', expires_in: '28800' },
      ...{ scope: 'customers:own reports:read', state: '</script>"', iss: AUTH },
    };
    await expect.poll(() => told(opener)).toEqual([{ data, origin: AUTH }]);
  });

  it('tells no opener of another origin', async () => {
    const [opener, popup] = await openFrom('https://evil.example/', { ...FOR_TOKEN, flow: 'button' });
    const closed = popup.waitForEvent('close');
    await signIn(popup);
    await closed;
    await opener.waitForTimeout(500);
    expect(await told(opener)).toEqual([]);
    complaints.splice(0); // Chromium says that the target origin is another
  });

  it('shows a page where there is no opener, and keeps the answer to itself', async () => {
    const page = await openPage({ ...FOR_TOKEN, flow: 'button' });
    await signIn(page);
    await page.getByRole('heading', { name: 'Back to the application' }).waitFor();
    expect(await page.innerText('body')).not.toContain('dev:');
  });
});

describe.each(['light', 'dark'] as const)('every page in %s', (colorScheme) => {
  it.each([
    ['320 px', { width: 320, height: 640 }],
    ['1280 px', { width: 1280, height: 800 }],
  ])('has nothing that axe finds, and no horizontal scroll bar: %s', async (_, viewport) => {
    const page = await openWindow({ colorScheme, viewport });
    const look = async (name: string) => {
      await page.evaluate(axe.source);
      const found = await page.evaluate<{ violations: { id: string }[]; incomplete: { id: string }[] }>('axe.run()');
      expect({ name, violations: found.violations.map(({ id }) => id) }).toEqual({ name, violations: [] });
      expect({ name, incomplete: found.incomplete.map(({ id }) => id) }).toEqual({ name, incomplete: [] });
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect({ name, width }).toEqual({ name, width: viewport.width });
      if (SCREENSHOTS === undefined) return;
      mkdirSync(SCREENSHOTS, { recursive: true });
      await page.screenshot({ path: join(SCREENSHOTS, `${name}-${colorScheme}-${viewport.width}.png`) });
    };

    await page.goto(addressOf({ ...FOR_TOKEN, redirect_uri: 'https://evil.example/' }));
    await look('error');
    await page.goto(addressOf({ ...FOR_TOKEN, flow: 'button', prompt: 'consent' }));
    await look('sign-in');
    await signIn(page, { ...ACME_AGENT, password: 'wrong' });
    await look('sign-in-problem');
    await signIn(page);
    await look('consent');
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByRole('heading', { name: 'Back to the application' }).waitFor();
    await look('opener');
    await page.goto(addressOf(FOR_LONG));
    await look('consent-long');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await look('signed-out');
  });
});
