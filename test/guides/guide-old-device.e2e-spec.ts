import { approveMove, endToken, logOutEverywhere, TokenClient } from 'browser-client';
import { describe, expect, it } from 'vitest';
import { refreshingRegistry } from '../support/customer-refresh.js';
import { loadExample } from '../support/load-example.js';
import { stubPageGlobals } from '../support/page-globals.js';
import { pageTokens } from '../support/page-tokens.js';
import { startScriptedServer } from '../support/scripted-server.js';
import { secureStorage } from '../support/secure-storage.js';
import { skipWaits } from '../support/skipped-waits.js';
import { ACME, ACME_SITE } from '../support/test-registry.js';
import { newCustomer } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const { AppSession } = await loadExample('second-device/app.js');

skipWaits();
stubPageGlobals();
const service = useService({ registry: refreshingRegistry() });

const tokensAt = (url: string) => pageTokens(service, url);
const phone = () => new AppSession({ url: service.url, clientId: ACME_SITE, store: secureStorage() });

describe('approveMove and endToken of browser-client', () => {
  it('repeats the request for a transfer token after a lost response, 429 and 503', async () => {
    const server = await startScriptedServer(['closed', 429, 503, 200]);
    expect(await approveMove(tokensAt(server.url), ACME_SITE, 'any')).toHaveProperty('bearer');
    expect(server.requests()).toBe(4);
  });

  it('creates a fresh transfer token for the same challenge, with a bearer of its own', async () => {
    const tokens = tokensAt(service.url);
    const device = phone();
    const challenge = await device.beginMove();
    const [shown, fresh] = [
      await approveMove(tokens, ACME_SITE, challenge),
      await approveMove(tokens, ACME_SITE, challenge),
    ];
    expect(fresh).toMatchObject({ expiresInSeconds: 3600 });
    expect(fresh.transferToken).not.toBe(shown.transferToken);
    expect(fresh.bearer).not.toBe(shown.bearer);
    expect(await device.finishMove(fresh.transferToken)).toHaveProperty('access_token');
  });

  it('moves no customer that the page does not show, which happens in a browser without cookies', async () => {
    const tokens = { ...tokensAt(service.url), requestToken: () => newCustomer(service) };
    await expect(approveMove(tokens, ACME_SITE, 'any')).rejects.toMatchObject({ error: 'other_customer' });
  });

  it('ends a move also if the bearer has expired', async () => {
    const tokens = tokensAt(service.url);
    const { bearer } = await approveMove(tokens, ACME_SITE, await phone().beginMove());
    service.clock.advance({ seconds: 28_800 });
    await endToken(tokens, bearer);
    service.clock.reset();
  });

  it('has ended a move if the response to the first attempt was lost', async () => {
    const server = await startScriptedServer(['closed', 200]);
    await endToken(tokensAt(server.url), 'dev:any');
    expect(server.requests()).toBe(2);
  });
});

it('logOutEverywhere rejects with moved_browser without the cookies of the browser that created the customer', async () => {
  const tokens = new TokenClient({ url: service.url, clientId: ACME_SITE, organizationId: ACME });
  tokens.requestToken = tokensAt(service.url).requestToken as TokenClient['requestToken'];
  await expect(logOutEverywhere(tokens)).rejects.toMatchObject({ status: 400, error: 'moved_browser' });
});
