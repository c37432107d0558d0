import { describe, expect, it, vi } from 'vitest';
import { refreshCustomer, refreshingRegistry } from '../support/customer-refresh.js';
import { loadExample } from '../support/load-example.js';
import { stubPageGlobals } from '../support/page-globals.js';
import { startScriptedServer } from '../support/scripted-server.js';
import { secureStorage } from '../support/secure-storage.js';
import { skipWaits } from '../support/skipped-waits.js';
import { ACME_SITE } from '../support/test-registry.js';
import { infoStatus, newCustomer, transferToken } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const { AppSession } = await loadExample('second-device/app.js');

const waits = skipWaits();
stubPageGlobals();
const service = useService({ registry: refreshingRegistry() });

const appAt = (url: string, store: object = secureStorage()) => new AppSession({ url, clientId: ACME_SITE, store });

/** Approves the move of a customer, by default of a new one, into an app. */
async function approve(app: typeof AppSession, customer?: { access_token: string }): Promise<string> {
  const { access_token } = customer ?? (await newCustomer(service));
  return transferToken(service, access_token, { code_challenge: await app.beginMove() });
}

describe('second-device/app.js', () => {
  it('stores each refresh token, and renews once for parallel calls', async () => {
    const store = secureStorage();
    const write = vi.spyOn(store, 'write');
    const app = appAt(service.url, store);
    const first = await app.finishMove(await approve(app));
    const restarted = appAt(service.url, store);
    write.mockClear();
    const tokens = await Promise.all([restarted.token(), restarted.token(), restarted.token()]);
    expect(new Set(tokens).size).toBe(1);
    expect(tokens[0]).not.toBe(first.access_token);
    expect(write).toHaveBeenCalledOnce();
    expect((await refreshCustomer(service, store.token as string)).status).toBe(200);
  });

  it('drops the refresh token after invalid_grant, but not one that a new move has stored meanwhile', async () => {
    const store = secureStorage('dev:unknown');
    await expect(appAt(service.url, store).token()).rejects.toMatchObject({ status: 400, error: 'no_customer' });
    expect(store.token).toBeUndefined();
    await store.write('refresh-token', 'dev:unknown');
    vi.spyOn(store, 'read').mockResolvedValueOnce('dev:older');
    await expect(appAt(service.url, store).token()).rejects.toMatchObject({ error: 'invalid_grant' });
    expect(store.token).toBe('dev:unknown');
    await expect(appAt(service.url).token()).rejects.toMatchObject({ error: 'no_customer' });
  });

  it('rejects with store_failed if the storage failed after an exchange, and sends no second one', async () => {
    const server = await startScriptedServer([200, 200]);
    const store = secureStorage();
    const app = appAt(server.url, store);
    await app.beginMove();
    vi.spyOn(store, 'write').mockRejectedValueOnce(new Error('storage is full'));
    await expect(app.finishMove('dev:any')).rejects.toMatchObject({ error: 'store_failed' });
    await expect(app.finishMove('dev:any')).rejects.toMatchObject({ error: 'move_not_begun' });
    expect(server.requests()).toBe(1);
  });

  it('retains the refresh token if no attempt succeeds, and begins the last attempt within 90 s', async () => {
    const server = await startScriptedServer(['closed', 503, 'proxy', 'closed']);
    const store = secureStorage('dev:refresh');
    await expect(appAt(server.url, store).token()).rejects.toMatchObject({ error: 'no_response' });
    expect(server.requests()).toBe(4);
    const timeoutsMs = 3 * 5_000;
    expect(waits.totalMs() + timeoutsMs).toBeLessThanOrEqual(90_000);
    expect(store.token).toBe('dev:refresh');
  });

  it('replaces its customer by another one only with replace: true', async () => {
    const app = appAt(service.url);
    await app.finishMove(await approve(app));
    const first = await app.token();
    const other = await newCustomer(service);
    const code = await approve(app, other);
    await expect(app.finishMove(code)).rejects.toMatchObject({ error: 'identity_conflict' });
    expect(await app.token()).toBe(first);
    const response = await app.finishMove(code, { replace: true });
    expect(response).toMatchObject({ entity_id: other.entity_id, access_token: await app.token() });
    expect(response).not.toHaveProperty('refresh_token');
  });

  it('renews after the API has rejected the token, but not after it has rejected an older one', async () => {
    const app = appAt(service.url);
    const { access_token: rejected } = await app.finishMove(await approve(app));
    app.discard(rejected);
    const renewed = await app.token();
    expect(renewed).not.toBe(rejected);
    app.discard(rejected);
    expect(await app.token()).toBe(renewed);
  });

  it('ends its own tokens and none of other devices, or the tokens on all devices', async () => {
    const store = secureStorage();
    const app = appAt(service.url, store);
    const customer = await newCustomer(service);
    await app.finishMove(await approve(app, customer));
    const left = store.token as string;
    await app.leave();
    expect(store.token).toBeUndefined();
    expect((await refreshCustomer(service, left)).status).toBe(400);
    await expect(app.token()).rejects.toMatchObject({ error: 'no_customer' });
    expect(await infoStatus(service, customer.access_token)).toBe(200);
    await app.finishMove(await approve(app, customer));
    const copy = store.token as string;
    await app.leave({ everywhere: true });
    await expect(app.token()).rejects.toMatchObject({ error: 'no_customer' });
    expect(await infoStatus(service, customer.access_token)).toBe(401);
    expect((await refreshCustomer(service, copy)).status).toBe(400);
  });

  it('keeps the refresh token if the service did not end it, so that the user can log out again', async () => {
    const server = await startScriptedServer([503, 503, 503, 503, 200]);
    const store = secureStorage('dev:refresh');
    const app = appAt(server.url, store);
    await expect(app.leave()).rejects.toMatchObject({ status: 503 });
    expect(store.token).toBe('dev:refresh');
    await app.leave();
    expect(store.token).toBeUndefined();
  });

  it('leaves everywhere if the response to the first attempt was lost', async () => {
    const server = await startScriptedServer([200, 'closed', { error: 'invalid_token', status: 401 }]);
    const store = secureStorage('dev:refresh');
    await appAt(server.url, store).leave({ everywhere: true });
    expect(store.token).toBeUndefined();
    expect(server.requests()).toBe(3);
  });
});
