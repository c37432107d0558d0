import { errorText, RequestError, TokenClient } from 'browser-client';
import { describe, expect, it, vi } from 'vitest';
import { stubPageGlobals } from '../support/page-globals.js';
import { type ScriptedServer, type ScriptedStep, startScriptedServer } from '../support/scripted-server.js';
import { skipWaits } from '../support/skipped-waits.js';

const OTHER_TAB = '../../packages/browser-client/src/token-client.ts?tab=2';
const { TokenClient: TokenClientOfOtherTab } = (await import(OTHER_TAB)) as { TokenClient: typeof TokenClient };

skipWaits();
stubPageGlobals();
let server: ScriptedServer | undefined;

/** A token client of a browser whose token responses belong in turn to these customers, and later to the last one. */
function clientOf(customers: string[], Client = TokenClient, expires_in = 3600) {
  const onCustomerChange = vi.fn();
  const tokens = new Client({ url: 'http://any', clientId: 'any', organizationId: 'any', onCustomerChange });
  const requestToken = vi.spyOn(tokens, 'requestToken').mockImplementation(async () => {
    const entity_id = customers.length > 1 ? customers.shift() : customers[0];
    return { access_token: `dev:${entity_id}`, entity_id: entity_id as string, expires_in, token_type: 'Bearer' };
  });
  return { tokens, onCustomerChange, requestToken };
}

/** Starts an API that responds by the script. Returns its URL. */
async function startApi(script: ScriptedStep[]): Promise<string> {
  server = await startScriptedServer(script);
  return server.url;
}
const CHANGED = { name: 'RequestError', error: 'customer_changed', isTemporary: false, mayHaveSucceeded: false };

describe('a TokenClient when the browser has another customer than before', () => {
  it('does not repeat a call that got 401, and calls onCustomerChange once', async () => {
    const { tokens, onCustomerChange } = clientOf(['old', 'new']);
    const api = await startApi([401, 200]);
    await expect(tokens.fetch(api)).rejects.toMatchObject(CHANGED);
    expect(server?.requests()).toBe(1);
    expect(onCustomerChange.mock.calls).toEqual([['new']]);
    expect((await tokens.fetch(api)).status).toBe(200);
    expect(onCustomerChange).toHaveBeenCalledOnce();
  });

  it('does not repeat a call whose token expired while it waited after 429', async () => {
    const { tokens, onCustomerChange } = clientOf(['old', 'new'], TokenClient, 1);
    await expect(tokens.fetch(await startApi([429, 200]))).rejects.toMatchObject(CHANGED);
    expect(server?.requests()).toBe(1);
    expect(onCustomerChange.mock.calls).toEqual([['new']]);
  });

  it('does not send a call that begins before the page knows the new customer', async () => {
    const { tokens, onCustomerChange } = clientOf(['old', 'new']);
    const api = await startApi([200]);
    await tokens.get();
    tokens.discard();
    await expect(tokens.fetch(api)).rejects.toMatchObject(CHANGED);
    expect(server?.requests()).toBe(0);
    expect(onCustomerChange.mock.calls).toEqual([['new']]);
  });

  it('rejects with cookies_blocked, and calls nothing, if each request has another customer', async () => {
    const { tokens, onCustomerChange, requestToken } = clientOf(['first', 'second', 'third', 'fourth', 'fifth']);
    const api = await startApi([401, 200]);
    await expect(tokens.fetch(api)).rejects.toMatchObject({ error: 'cookies_blocked', isTemporary: false });
    await expect(tokens.get()).rejects.toMatchObject({ error: 'cookies_blocked' });
    expect(requestToken).toHaveBeenCalledTimes(5);
    expect(server?.requests()).toBe(1);
    expect(onCustomerChange).not.toHaveBeenCalled();
  });

  it('repeats a call with a new token of the same customer', async () => {
    const { tokens, onCustomerChange, requestToken } = clientOf(['same']);
    expect((await tokens.fetch(await startApi([401, 200]))).status).toBe(200);
    expect(requestToken).toHaveBeenCalledTimes(2);
    expect(onCustomerChange).not.toHaveBeenCalled();
  });
});

describe('a TokenClient after a tab has left its customer', () => {
  it('calls onCustomerChange in the other tabs, and not in the tab that has left', async () => {
    const leaving = clientOf(['old', 'new']);
    const other = clientOf(['old', 'new'], TokenClientOfOtherTab);
    await Promise.all([leaving.tokens.get(), other.tokens.get()]);
    leaving.tokens.discardInAllTabs();
    await expect.poll(() => other.onCustomerChange.mock.calls.length).toBeGreaterThan(0);
    expect(other.onCustomerChange.mock.calls).toEqual([['new']]);
    expect(await leaving.tokens.entityId()).toBe('new');
    expect(leaving.onCustomerChange).not.toHaveBeenCalled();
  });

  it('calls nothing in another tab whose customer is the same, and requests no token there for an unused client', async () => {
    const leaving = clientOf(['old', 'new']);
    const other = clientOf(['of a group that stays'], TokenClientOfOtherTab);
    const unused = clientOf(['any'], TokenClientOfOtherTab);
    await other.tokens.get();
    leaving.tokens.discardInAllTabs();
    await expect.poll(() => other.requestToken.mock.calls).toHaveLength(2);
    expect(await other.tokens.entityId()).toBe('of a group that stays');
    expect(other.onCustomerChange).not.toHaveBeenCalled();
    expect(unused.requestToken).not.toHaveBeenCalled();
  });
});

describe('errorText of browser-client', () => {
  it.each([
    [{ error: 'customer_changed' }, 'Reload the page'],
    [{ status: 429, error: 'temporarily_unavailable', retryAfterSeconds: 30 }, '30 seconds.'],
    [{ status: 429, error: 'temporarily_unavailable', retryAfterSeconds: 1 }, '1 second.'],
    [{ error: 'cookies_blocked' }, 'Allow them'],
    [{ error: 'no_response' }, 'not reachable'],
    [{ error: 'move_uncertain' }, 'Begin again'],
    [{ status: 400, error: 'invalid_request', requestId: 'an-id' }, 'an-id'],
  ])('has a text for %j', (fields, text) => {
    expect(errorText(new RequestError(fields))).toContain(text);
  });

  it('has a text for an error of the page itself', () => {
    expect(errorText(new TypeError('of the page'))).toContain('unexpected');
  });
});
