import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { expectAccessible } from '../support/accessibility.js';
import { pkce } from '../support/agent-tokens.js';
import { FOR_CODE, FOR_NATIVE, FOR_PUBLIC, FOR_TOKEN, type Query, queryOf } from '../support/authorization-page.js';
import { BROWSER_NAME, launchBrowser } from '../support/browser-launch.js';
import { type HttpsProxy, startHttpsProxy } from '../support/https-proxy.js';
import { ACME, ACME_AGENT, ACME_PAGE, PUBLIC_ORIGIN, testRegistry } from '../support/test-registry.js';
import { useService } from '../support/use-service.js';

const AUTH = 'https://auth.example';
const LANDING_URL = 'https://app.elsewhere.example/home';
const MOVED_ORIGIN = 'https://moved.acme.example';

const registry = testRegistry();
registry.clients.push({
  client_id: 'long',
  name: 'Donaudampfschifffahrtsgesellschaftskapitänsmützenverwaltung for everybody',
  ...{ client_type: 'web', redirect_uris: [`${PUBLIC_ORIGIN}/`], scopes: ['customers:own', 'reports:read'] },
});
registry.clients.push({
  client_id: 'moved',
  name: 'An application that redirects to another origin',
  ...{ client_type: 'web', organization_id: ACME, redirect_uris: [`${MOVED_ORIGIN}/chat`], scopes: ['customers:own'] },
});
registry.agents[0] = { ...registry.agents[0], scopes: ['customers:own', 'reports:read'] };
const FOR_LONG: Query = { ...FOR_PUBLIC, client_id: 'long', prompt: 'consent' };
const FOR_MOVED: Query = { ...FOR_TOKEN, client_id: 'moved', redirect_uri: `${MOVED_ORIGIN}/chat` };

const service = useService({ registry });
let front: HttpsProxy;
let browser: Browser;
const contexts: BrowserContext[] = [];
/** The console errors of the pages. */
const consoleErrors: string[] = [];

beforeAll(async () => {
  front = await startHttpsProxy('auth.example', service.url, {
    'backend.acme.example': LANDING_URL,
    'moved.acme.example': LANDING_URL,
  });
  browser = await launchBrowser({ httpsPort: front.port });
});
afterAll(async () => {
  await browser?.close();
  await front?.stop();
});
afterEach(async () => {
  for (const context of contexts.splice(0)) await context.close();
  expect(consoleErrors.splice(0)).toEqual([]);
});

async function openWindow(options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, ...options });
  contexts.push(context);
  context.on('console', (message) => {
    // Chromium logs an error for each 4xx response, which the tests expect.
    if (message.type() === 'error' && !/status of 4\d\d/.test(message.text())) consoleErrors.push(message.text());
  });
  return context.newPage();
}

async function openPage(parameters: Query, options: BrowserContextOptions = {}): Promise<Page> {
  const page = await openWindow(options);
  await page.goto(authorizationUrl(parameters));
  return page;
}

function authorizationUrl(parameters: Query): string {
  return `${AUTH}/?${queryOf(parameters)}`;
}

async function signIn(page: Page, { email, password } = ACME_AGENT): Promise<void> {
  const field = page.getByLabel('Email');
  if ((await field.inputValue()) === '') await field.fill(email); // in Firefox, `fill` appends to the text of an email field
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Signs in with a wrong password, and waits for the page with the error. */
async function failToSignIn(page: Page): Promise<void> {
  await signIn(page, { ...ACME_AGENT, password: 'wrong' });
  await page.getByRole('alert').waitFor();
}

/** Waits for a URL that begins with `prefix`. Returns its parameters. */
async function parametersAt(page: Page, prefix: string): Promise<Record<string, string>> {
  await page.waitForURL((url) => url.href.startsWith(prefix));
  const { search, hash } = new URL(page.url());
  return Object.fromEntries(new URLSearchParams(hash.slice(1) || search));
}

describe('an agent in a real browser', () => {
  it('signs in with the keyboard only, with a visible focus', async () => {
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
    expect(await parametersAt(page, `${ACME_PAGE}#`)).toMatchObject({
      ...{ access_token: expect.stringMatching(/^dev:/), token_type: 'Bearer', scope: 'customers:own' },
      ...{ state: 'a b', iss: AUTH },
    });
  });

  it('sees an error after a wrong password, and may try again with the same email', async () => {
    const page = await openPage(FOR_TOKEN);
    await failToSignIn(page);
    expect(await page.getByRole('alert').textContent()).toBe('The email or the password is wrong.');
    expect(await page.title()).toBe('Problem: Sign in');
    expect(await page.getByLabel('Email').inputValue()).toBe(ACME_AGENT.email);
    expect(await page.getByLabel('Password').inputValue()).toBe('');
    expect(await page.locator(':focus').getAttribute('id')).toBe('password');
    await page.keyboard.type(ACME_AGENT.password);
    await page.keyboard.press('Enter');
    expect(await parametersAt(page, ACME_PAGE)).toHaveProperty('access_token');
  });

  it('is asked for consent once, and may answer with the keyboard', async () => {
    const page = await openPage(FOR_PUBLIC);
    await signIn(page);
    await page.getByRole('heading', { name: 'Widget for everybody' }).waitFor();
    await page.keyboard.press('Tab');
    expect(await page.locator(':focus').textContent()).toBe('Allow');
    await page.keyboard.press('Enter');
    expect(await parametersAt(page, `${PUBLIC_ORIGIN}/#`)).toHaveProperty('access_token');
    await page.goto(authorizationUrl(FOR_PUBLIC));
    expect(await parametersAt(page, `${PUBLIC_ORIGIN}/#`)).toHaveProperty('access_token');
  });

  it('may deny the request, and may sign out', async () => {
    const page = await openPage({ ...FOR_LONG, state: 's' });
    await signIn(page);
    await page.getByRole('button', { name: 'Deny' }).click();
    expect(await parametersAt(page, `${PUBLIC_ORIGIN}/#`)).toMatchObject({ error: 'access_denied', state: 's' });
    await page.goto(authorizationUrl(FOR_LONG));
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
    await page.goto(authorizationUrl(FOR_LONG));
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });

  it.each<[string, Query, string, string]>([
    ['a code', FOR_CODE, '/callback?', 'code'],
    ['a token', FOR_MOVED, '/chat#', 'access_token'],
  ])('gets %s at a callback that redirects to another origin', async (_, query, callback, parameter) => {
    for (const prompt of [undefined, 'consent']) {
      const page = await openPage({ ...query, prompt, state: 's' });
      await signIn(page);
      if (prompt) await page.getByRole('button', { name: 'Allow' }).click();
      const parameters = await parametersAt(page, LANDING_URL + callback);
      expect(parameters).toMatchObject({ [parameter]: expect.any(String), state: 's', iss: AUTH });
      expect(await page.evaluate('document.referrer')).toBe('');
    }
  });

  it('leaves no page behind that leads forward again when the agent goes back', async () => {
    const page = await openWindow();
    await page.goto(ACME_PAGE);
    await page.goto(authorizationUrl(FOR_LONG));
    await signIn(page);
    await page.getByRole('button', { name: 'Allow' }).click();
    await parametersAt(page, `${PUBLIC_ORIGIN}/#`);
    await page.goBack();
    await page.getByRole('button', { name: 'Allow' }).waitFor();
    await page.goBack({ waitUntil: 'commit' });
    await page.evaluate('history.back()'); // Firefox restores the page without the events that `goBack` waits for.
    await expect.poll(() => page.evaluate('location.href')).toBe(ACME_PAGE);
  });

  it('is led to a native application with a private-use scheme, at once and by a link', async () => {
    const page = await openPage({ ...FOR_NATIVE, ...pkce().asked });
    // The browser knows no such scheme. Firefox has no event that says so.
    const refused = BROWSER_NAME === 'chromium' && page.waitForEvent('requestfailed');
    await signIn(page);
    await page.getByRole('button', { name: 'Allow' }).click();
    const url = await page.getByRole('link', { name: 'Acme for phones' }).getAttribute('href');
    expect(url).toMatch(/^example\.acme:\/callback\?code=dev%3A/);
    if (refused) expect((await refused).url()).toBe(url);
    await expectAccessible(page, 'continue');
    consoleErrors.splice(0); // Chromium logs that no application handles the scheme.
  });

  // By WebDriver BiDi, this Firefox cannot switch JavaScript off.
  it.skipIf(BROWSER_NAME === 'firefox')('signs in and consents without JavaScript', async () => {
    const page = await openPage(FOR_LONG, { javaScriptEnabled: false });
    await failToSignIn(page);
    await signIn(page);
    await page.getByRole('button', { name: 'Allow' }).click();
    expect(await parametersAt(page, `${PUBLIC_ORIGIN}/#`)).toHaveProperty('access_token');
  });

  it('cannot open the page in a frame of another site', async () => {
    const page = await openWindow();
    await page.goto(ACME_PAGE);
    await page.setContent(`<iframe src="${authorizationUrl(FOR_TOKEN)}" onload="frameLoaded = true"></iframe>`);
    await page.waitForFunction('globalThis.frameLoaded');
    expect(front.seen).toContainEqual(expect.objectContaining({ method: 'GET', site: 'cross-site' }));
    expect(await page.frames()[1]?.locator('#email').count()).toBe(0);
    consoleErrors.splice(0); // Chromium logs that it blocks the frame.
  });

  it('loads nothing from other hosts on the pages', async () => {
    const page = await openWindow();
    const hosts = new Set<string>();
    page.on('request', (request) => hosts.add(new URL(request.url()).host));
    await page.goto(authorizationUrl(FOR_LONG));
    await signIn(page);
    await page.getByRole('button', { name: 'Deny' }).waitFor();
    expect([...hosts]).toEqual(['auth.example']);
  });
});

describe('every page', () => {
  it('has no violation that axe finds, and no horizontal scroll bar', async () => {
    const page = await openWindow();
    const check = (name: string) => expectAccessible(page, name);

    await page.goto(authorizationUrl({ ...FOR_TOKEN, redirect_uri: 'https://evil.example/' }));
    await check('error');
    await page.goto(authorizationUrl({ ...FOR_TOKEN, prompt: 'consent' }));
    await check('sign-in');
    await failToSignIn(page);
    await check('sign-in-problem');
    await signIn(page);
    await page.getByRole('button', { name: 'Allow' }).waitFor();
    await check('consent');
    await page.goto(authorizationUrl(FOR_LONG));
    await check('consent-long');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
    await check('signed-out');
  });
});
