import { codeOf, NewBrowser, TokenClient } from 'browser-client';
import { describe, expect, it, vi } from 'vitest';
import { loadExample } from '../support/load-example.js';
import { stubPageGlobals } from '../support/page-globals.js';
import { type ScriptedStep, startScriptedServer } from '../support/scripted-server.js';
import { secureStorage } from '../support/secure-storage.js';
import { skipWaits } from '../support/skipped-waits.js';
import { ACME, ACME_SITE } from '../support/test-registry.js';

const { AppSession } = await loadExample('second-device/app.js');

skipWaits();
stubPageGlobals();

const UNCERTAIN = { error: 'move_uncertain', isTemporary: false, mayHaveSucceeded: true };

const appAt = (url: string, store: object = secureStorage()) => new AppSession({ url, clientId: ACME_SITE, store });
const browserAt = (url: string, _store?: object) =>
  new NewBrowser(new TokenClient({ url, clientId: ACME_SITE, organizationId: ACME }));

it('the code of a challenge has 12 digits in groups of 4', () => {
  expect(codeOf('LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE')).toBe('9637 2802 5382');
  expect(codeOf('-_AA'.padEnd(43, 'A'))).toMatch(/^\d{4} \d{4} \d{4}$/);
  expect(codeOf('A'.repeat(43))).toBe('0000 0000 0000');
});

describe.each([
  ['second-device/app.js', appAt],
  ['NewBrowser of browser-client', browserAt],
] as const)('%s receives a customer', (_, deviceAt) => {
  it.each<[string, ScriptedStep[], number, object]>([
    ['repeats an exchange after 429 and 503', [503, 429, 400], 3, { status: 400 }],
    ['rejects at once if a rate limit lasts a minute', ['limited'], 1, { status: 429, retryAfterSeconds: 60 }],
    ['does not repeat an exchange after an error of a proxy', ['proxy'], 1, { status: 502, ...UNCERTAIN }],
    ['does not repeat an exchange whose response was lost', ['closed'], 1, { status: 0, ...UNCERTAIN }],
  ])('%s', async (_title, script, requests, fields) => {
    const server = await startScriptedServer(script);
    const device = deviceAt(server.url);
    await device.beginMove();
    await expect(device.finishMove('dev:any')).rejects.toMatchObject(fields);
    expect(server.requests()).toBe(requests);
  });

  it('sends no second exchange if the response to the first one was lost', async () => {
    const server = await startScriptedServer(['closed', 200]);
    const device = deviceAt(server.url);
    const challenge = await device.beginMove();
    await expect(device.finishMove('dev:any')).rejects.toMatchObject({ error: 'move_uncertain' });
    await expect(device.finishMove('dev:any')).rejects.toMatchObject({ error: 'move_not_begun' });
    expect(server.requests()).toBe(1);
    expect(await device.beginMove()).not.toBe(challenge);
  });

  it('exchanges the same transfer token later if the service was busy', async () => {
    const server = await startScriptedServer(['limited', 'limited']);
    const device = deviceAt(server.url);
    const challenge = await device.beginMove();
    await expect(device.finishMove('dev:any')).rejects.toMatchObject({ isTemporary: true, mayHaveSucceeded: false });
    expect(await device.beginMove()).toBe(challenge);
    await expect(device.finishMove('dev:any')).rejects.toMatchObject({ status: 429 });
    expect(server.requests()).toBe(2);
  });

  it('has the same challenge after a reload or restart', async () => {
    const store = secureStorage();
    const challenge = await deviceAt('http://localhost', store).beginMove();
    expect(await deviceAt('http://localhost', store).beginMove()).toBe(challenge);
  });

  it('begins with a new challenge after invalid_grant', async () => {
    const server = await startScriptedServer([{ error: 'invalid_grant' }]);
    const device = deviceAt(server.url);
    const challenge = await device.beginMove();
    await expect(device.finishMove('dev:any')).rejects.toMatchObject({ status: 400, error: 'move_expired' });
    expect(await device.beginMove()).not.toBe(challenge);
  });
});

describe('NewBrowser of browser-client in several tabs', () => {
  it('has one challenge, and removes the verifier from all tabs before it sends the exchange', async () => {
    const server = await startScriptedServer(['closed', 200]);
    const [tab, scannedTab] = [browserAt(server.url), browserAt(server.url)];
    expect(await scannedTab.beginMove()).toBe(await tab.beginMove());
    const results = await Promise.allSettled([tab.finishMove('dev:any'), scannedTab.finishMove('dev:any')]);
    expect(results).toMatchObject([{ reason: { error: 'move_uncertain' } }, { reason: { error: 'move_not_begun' } }]);
    expect(server.requests()).toBe(1);
  });

  it('rejects without a request if the verifier is older than a transfer token, and begins with a new one', async () => {
    const server = await startScriptedServer([]);
    const tab = browserAt(server.url);
    const challenge = await tab.beginMove();
    const later = Date.now() + 3_600_000;
    vi.spyOn(Date, 'now').mockReturnValue(later);
    await expect(tab.finishMove('dev:any')).rejects.toMatchObject({ error: 'move_expired' });
    expect(await tab.beginMove()).not.toBe(challenge);
    expect(server.requests()).toBe(0);
  });
});
