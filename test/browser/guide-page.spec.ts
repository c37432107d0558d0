import { cpSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { launchBrowser } from '../support/browser-launch.js';
import { deferred } from '../support/deferred.js';
import { guideFile } from '../support/guide-site.js';
import { TestProcess } from '../support/processes.js';
import { temporaryFolder } from '../support/project-files.js';
import { rememberingRegistry } from '../support/remember.js';
import { useService } from '../support/use-service.js';

/** The file with the URL of the service and the ids. */
const OPTIONS_FILE = 'chat.js';

const folder = temporaryFolder('guide');
let server: TestProcess;
let browser: Browser;
let page: string;
const service = useService(async () => {
  cpSync('examples/integrating', folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  server = TestProcess.start(`${folder}/serve.js` as `/${string}`, ['0'], {});
  [page] = await server.says(/http:\S+/);
  const registry = rememberingRegistry();
  registry.clients = registry.clients.map((client) => ({ ...client, origins: [new URL(page).origin] }));
  return { registry, environment: { AUTH_URL: 'http://localhost:3000' } };
});
beforeAll(async () => {
  const options = guideFile(OPTIONS_FILE, service.url.replace('127.0.0.1', 'localhost'));
  writeFileSync(join(folder, 'browser', OPTIONS_FILE), options);
  browser = await launchBrowser();
});
afterEach(async () => {
  for (const context of browser.contexts()) await context.close();
});
afterAll(async () => {
  await browser?.close();
  server?.signal('SIGTERM');
});

/** The customer that a page shows. */
async function shownCustomer(tab: Page): Promise<string> {
  await expect.poll(() => tab.locator('output').innerText()).toMatch(/^[\w-]{36}$/);
  return tab.locator('output').innerText();
}

it('the page browser/index.html, served by serve.js without TLS, keeps its customer until the user leaves', async () => {
  const tab = await browser.newPage();
  const customer = () => shownCustomer(tab);
  await tab.goto(page);
  const first = await customer();
  await tab.reload();
  expect(await customer()).toBe(first);
  const seen = [first];
  for (const button of ['Leave this browser', 'Log out everywhere']) {
    await Promise.all([tab.waitForEvent('load'), tab.getByRole('button', { name: button }).click()]);
    expect(seen).not.toContain(await customer());
    seen.push(await customer());
  }
});

it('the page browser/index.html reloads if its customer has changed in another tab or on another device', async () => {
  const context = await browser.newContext();
  const [tab, other] = [await context.newPage(), await context.newPage()];
  for (const each of [tab, other]) await each.goto(page);
  const first = await shownCustomer(tab);
  expect(await shownCustomer(other)).toBe(first);
  await tab.getByRole('button', { name: 'Leave this browser' }).click();
  await expect.poll(() => shownCustomer(other)).not.toBe(first);
  const second = await shownCustomer(other);
  await expect.poll(() => shownCustomer(tab)).toBe(second);
  await other.evaluate(`(async () => {
    const { options, tokens } = await import('./chat.js');
    const headers = { Authorization: 'Bearer ' + (await tokens.get()) };
    const request = { method: 'POST', credentials: 'include', headers, body: '{"browsers":true}' };
    await fetch(options.url + '/v2/customer/end_sessions', request);
  })()`);
  await Promise.all([other.waitForEvent('load'), other.getByRole('button', { name: 'Call an API' }).click()]);
  expect([first, second]).not.toContain(await shownCustomer(other));
});

/** A camera can scan a QR code only as a whole, and on a light background. */
async function expectToFit(code: Locator): Promise<void> {
  const { x = -1, y = -1, width = 0, height = 0 } = (await code.boundingBox()) ?? {};
  const window = code.page().viewportSize() ?? { width: 0, height: 0 };
  expect(Math.min(x, y)).toBeGreaterThanOrEqual(0);
  expect(Math.min(width, height)).toBeGreaterThan(150);
  expect(await code.locator('..').getAttribute('style')).toContain('background: white');
  expect({ fitsWidth: x + width <= window.width, fitsHeight: y + height <= window.height }).toEqual({
    fitsWidth: true,
    fitsHeight: true,
  });
}

/** Opens second-device/computer.html and the link of its QR code in another browser, and compares the codes. */
async function beginMove(computer: Page, phone: Page): Promise<void> {
  await computer.getByRole('link', { name: 'Continue on your phone' }).click();
  const link = computer.locator('#link', { hasText: '#room=' });
  await link.waitFor();
  await expectToFit(computer.locator('#code svg'));
  await phone.goto('about:blank'); // a link that differs in its fragment only would not load the page again
  await phone.goto(await link.innerText());
  await phone.getByRole('button', { name: 'Continue' }).click();
  await computer.getByText('Does your phone show').waitFor();
  const [code] = /\d{4} \d{4} \d{4}/.exec(await computer.locator('#text').innerText()) ?? [];
  expect(await phone.locator('#text').innerText()).toContain(`show ${code}?`);
}

it('second-device/computer.html moves its customer to second-device/phone.html, which has no customer before', async () => {
  const [computer, phone] = [await browser.newPage(), await browser.newPage()];
  await computer.goto(page);
  const customer = await shownCustomer(computer);
  await beginMove(computer, phone);
  expect(await phone.context().cookies()).toEqual([]);
  const left = deferred();
  await phone.route('**/rooms/**', (route) => left.promise.then(() => route.continue()));
  await computer.getByRole('button', { name: 'Yes, move it' }).click();
  await computer.getByText('Look at your phone.').waitFor();
  await computer.goto(page);
  await shownCustomer(computer);
  left.resolve();
  expect(await shownCustomer(phone)).toBe(customer);
});

it('second-device/phone.html waits no longer when the user of second-device/computer.html leaves the page', async () => {
  const [computer, phone] = [await browser.newPage(), await browser.newPage()];
  await computer.goto(page);
  await beginMove(computer, phone);
  await computer.reload();
  await phone.getByText('The move was denied').waitFor();
});

it('both pages of second-device let the user try again after a loss of the network', async () => {
  const [computer, phone] = [await browser.newPage(), await browser.newPage()];
  await computer.goto(page);
  const customer = await shownCustomer(computer);
  const lose = async (tab: Page, route: string) => {
    await tab.evaluate("Object.defineProperty(navigator, 'onLine', { value: false })");
    await tab.route(route, (each) => each.abort());
  };
  await beginMove(computer, phone);
  await lose(phone, '**/rooms/**');
  await phone.getByText('Please try again').waitFor();
  await lose(computer, '**/identity_transfer');
  await computer.getByRole('button', { name: 'Yes, move it' }).click();
  await computer.getByText('Please try again').waitFor();
  for (const tab of [computer, phone]) await tab.unrouteAll();
  await computer.getByRole('button', { name: 'Try again' }).click();
  await computer.getByText('Look at your phone.').waitFor();
  await phone.getByRole('button', { name: 'Try again' }).click();
  expect(await shownCustomer(phone)).toBe(customer);
});

it('second-device/computer.html opens no room and shows no QR code if the user blocks the cookies', async () => {
  const computer = await browser.newPage();
  await computer.addInitScript(
    "navigator.locks.request = () => { throw new DOMException('Access is denied', 'SecurityError'); }",
  );
  const requests: string[] = [];
  computer.on('request', (request) => requests.push(new URL(request.url()).pathname));
  await computer.goto(new URL('/second-device/computer.html', page).href);
  await computer.getByText('Your browser blocks the cookies').waitFor();
  expect(requests).not.toContain('/rooms');
  expect(await computer.locator('#code svg, button:visible').count()).toBe(0);
});

it.each([
  ['a laptop', { width: 1280, height: 600 }],
  ['a narrow window', { width: 320, height: 480 }],
])('the QR code of second-device/computer.html fits into the window of %s', async (_, viewport) => {
  const computer = await browser.newPage({ viewport });
  await computer.goto(new URL('/second-device/computer.html', page).href);
  await computer.locator('#link', { hasText: '#room=' }).waitFor();
  await expectToFit(computer.locator('#code svg'));
});

it('second-device/phone.html shows no code, and says to deny the move, if another device has scanned first', async () => {
  const [computer, attacker, phone] = [await browser.newPage(), await browser.newPage(), await browser.newPage()];
  await computer.goto(page);
  await beginMove(computer, attacker);
  await phone.goto((await computer.locator('#link').textContent()) ?? '');
  await phone.getByRole('button', { name: 'Continue' }).click();
  await phone.getByText('Deny the move on your computer.').waitFor();
  expect(await phone.locator('#text').innerText()).not.toMatch(/\d{4}/);
});

it('second-device/phone.html asks before it replaces a customer, and says so if the move is denied', async () => {
  const [computer, phone] = [await browser.newPage(), await browser.newPage()];
  for (const tab of [computer, phone]) await tab.goto(page);
  const [customer, own] = [await shownCustomer(computer), await shownCustomer(phone)];
  expect(own).not.toBe(customer);
  await beginMove(computer, phone);
  await computer.getByRole('button', { name: 'No' }).click();
  await phone.getByText('The move was denied').waitFor();
  await computer.goto(page);
  await beginMove(computer, phone);
  await computer.getByRole('button', { name: 'Yes, move it' }).click();
  await phone.getByText('Replace it?').waitFor();
  await phone.getByRole('button', { name: 'Replace it' }).click();
  expect(await shownCustomer(phone)).toBe(customer);
});
