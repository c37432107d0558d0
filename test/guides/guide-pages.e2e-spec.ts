import { setImmediate } from 'node:timers/promises';
import {
  errorText,
  leaveThisBrowser,
  logOutEverywhere,
  RequestError,
  request,
  TokenClient,
} from '@customer-authorization/browser-client';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { deferred } from '../support/deferred.js';
import { type ScriptedServer, type ScriptedStep, startScriptedServer } from '../support/scripted-server.js';
import { skipWaits, stubPageGlobals } from '../support/stubbed-pages.js';

const OTHER_TAB = '../../packages/browser-client/src/token-client.ts?tab=2';
const { TokenClient: TokenClientOfOtherTab } = (await import(OTHER_TAB)) as { TokenClient: typeof TokenClient };

const waits = skipWaits();
stubPageGlobals();

const FOR_GOOD = { isTemporary: false, mayHaveSucceeded: false };

describe('request of browser-client', () => {
  it.each<[string, ScriptedStep[], number, object]>([
    ['repeats a request after a lost response, an error of a proxy, 429 and 503', ['closed', 'proxy', 429, 503], 4, {}],
    [
      'does not repeat a request that was rejected for good',
      [{ error: 'invalid_request', error_hint: 'a hint', request_id: 'an-id' }],
      1,
      { status: 400, ...FOR_GOOD, error: 'invalid_request', hint: 'a hint', requestId: 'an-id' },
    ],
    ['rejects at once if a rate limit lasts a minute', ['limited'], 1, { retryAfterSeconds: 60, isTemporary: true }],
    ['remembers that the response to an earlier attempt was lost', ['closed', 401], 2, { mayHaveSucceeded: true }],
    ['knows that a service that was busy did nothing', [503, 401], 2, { status: 401, mayHaveSucceeded: false }],
  ])('%s', async (_title, script, requests, fields) => {
    const server = await startScriptedServer(script);
    await expect(request(server.url, { body: {} })).rejects.toMatchObject(fields);
    expect(server.requests()).toBe(requests);
  });
});

describe('a request of browser-client that sends the cookies', () => {
  const send = (url: string) => request(url, { withCookies: true, body: {} });

  it('ends an attempt after 5 s, and lets the other tabs continue before the next one', async () => {
    const lock = vi.fn((_name: string, work: () => unknown) => work());
    vi.stubGlobal('navigator', { locks: { request: lock } });
    const limit = vi.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(AbortSignal.abort(new Error('timeout')));
    expect(await send((await startScriptedServer([200])).url)).toEqual({});
    expect(limit).toHaveBeenCalledWith(5_000);
    expect(lock).toHaveBeenCalledTimes(2);
  });

  it('is sent once if the browser knows that it is offline', async () => {
    vi.stubGlobal('navigator', { onLine: false });
    const server = await startScriptedServer(['closed', 200]);
    await expect(send(server.url)).rejects.toMatchObject({ error: 'no_response' });
    expect(server.requests()).toBe(1);
  });
});

describe('leaveThisBrowser and logOutEverywhere of browser-client', () => {
  const discardInAllTabs = vi.fn();
  const requestToken = vi.fn(async () => ({ access_token: 'dev:new' }));
  const expectNewCustomer = vi.fn();
  const fields = { validToken: 'dev:any', settings: { client: {} }, requestToken, expectNewCustomer, discardInAllTabs };
  const tokensAt = ({ url }: ScriptedServer) => ({ url, ...fields }) as unknown as TokenClient;
  beforeEach(() => void vi.clearAllMocks());

  it.each([
    ['leaveThisBrowser', leaveThisBrowser],
    ['logOutEverywhere', logOutEverywhere],
  ])('%s repeats its request after 503 and 429', async (_, leave) => {
    const server = await startScriptedServer([503, 429, 200]);
    await leave(tokensAt(server));
    expect(server.requests()).toBe(3);
    expect(discardInAllTabs).toHaveBeenCalledOnce();
  });

  it('logOutEverywhere has succeeded if it gets 401 after a lost response', async () => {
    const server = await startScriptedServer(['closed', 401, 200]);
    await logOutEverywhere(tokensAt(server));
    expect(server.requests()).toBe(2);
    expect(requestToken).not.toHaveBeenCalled();
    expect(discardInAllTabs).toHaveBeenCalledOnce();
  });

  it('logOutEverywhere renews a token that is not valid', async () => {
    await logOutEverywhere(tokensAt(await startScriptedServer([401, 200])));
    expect(requestToken).toHaveBeenCalledOnce();
  });

  it('logOutEverywhere renews a token only once', async () => {
    const server = await startScriptedServer([401, 401, 200]);
    await expect(logOutEverywhere(tokensAt(server))).rejects.toMatchObject({ status: 401 });
    expect(server.requests()).toBe(2);
    expect(requestToken).toHaveBeenCalledOnce();
    expect(discardInAllTabs).not.toHaveBeenCalled();
  });

  it('logOutEverywhere makes the other tabs check their customers once, after the last of several groups', async () => {
    const server = await startScriptedServer([200, 200]);
    const groups = [tokensAt(server), tokensAt(server)];
    discardInAllTabs.mockImplementation(() => expect(server?.requests()).toBe(2));
    await logOutEverywhere(...groups);
    expect(expectNewCustomer).toHaveBeenCalledTimes(2);
    expect(discardInAllTabs).toHaveBeenCalledOnce();
  });
});

describe('the function fetch of a TokenClient', () => {
  async function callWith(script: ScriptedStep[]) {
    const server = await startScriptedServer(script);
    const tokens = new TokenClient({ url: server.url, clientId: 'any', organizationId: 'any' });
    vi.spyOn(tokens, 'requestToken').mockResolvedValue({
      access_token: 'dev:any',
      entity_id: 'a',
      expires_in: 60,
      token_type: 'Bearer',
    });
    const discard = vi.spyOn(tokens, 'discard');
    const { status } = await tokens.fetch(server.url, { headers: new Headers({ Accept: 'text/plain' }) });
    return { status, requests: server.requests(), discards: discard.mock.calls.length };
  }

  it.each<[string, ScriptedStep[], object]>([
    ['waits after 429 and 503 and repeats the call', [429, 503, 200], { status: 200, requests: 3, discards: 0 }],
    ['returns the third response of an API that stays busy', [503, 503, 503], { status: 503, requests: 3 }],
    ['returns a 429 at once if the user would wait a minute', ['limited', 200], { status: 429, requests: 1 }],
    [
      'returns an error of a proxy, because the call may have been carried out',
      ['proxy'],
      { status: 502, requests: 1 },
    ],
    ['replaces a token that the API rejects, once', [401, 401], { status: 401, requests: 2, discards: 1 }],
  ])('%s', async (_title, script, expected) => {
    expect(await callWith(script)).toMatchObject(expected);
  });

  it('rejects with a RequestError if the API is unreachable', async () => {
    await expect(callWith(['closed'])).rejects.toMatchObject({
      name: 'RequestError',
      error: 'no_response',
      isTemporary: true,
      mayHaveSucceeded: true,
    });
  });

  it('waits as long as Retry-After says, and a random part', async () => {
    await callWith([429, 503, 200]);
    expect(waits.totalMs()).toBeGreaterThanOrEqual(2_000);
    expect(waits.totalMs()).toBeLessThanOrEqual(4_000);
  });
});

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

const CHANGED = { name: 'RequestError', error: 'customer_changed', ...FOR_GOOD };

describe('the token of a TokenClient', () => {
  const limited = new RequestError({ status: 429, error: 'temporarily_unavailable', retryAfterSeconds: 10 });
  const stopClockAfter = (seconds: number) => vi.spyOn(Date, 'now').mockReturnValue(Date.now() + seconds * 1000);
  beforeEach(() => void stopClockAfter(0));

  it('is requested once for calls that begin at the same time, and renewed in its last minute', async () => {
    const { tokens, requestToken } = clientOf(['any']);
    await Promise.all([tokens.get(), tokens.get(), tokens.entityId()]);
    stopClockAfter(3600 - 61);
    await tokens.get();
    expect(requestToken).toHaveBeenCalledTimes(1);
    stopClockAfter(1);
    await tokens.get();
    expect(requestToken).toHaveBeenCalledTimes(2);
  });

  it('stays while it is valid if it cannot be renewed, which is tried again only after Retry-After', async () => {
    const { tokens, requestToken } = clientOf(['any']);
    await tokens.get();
    requestToken.mockRejectedValue(limited);
    stopClockAfter(3600 - 30);
    expect([await tokens.get(), await tokens.get()]).toEqual(['dev:any', 'dev:any']);
    expect(requestToken).toHaveBeenCalledTimes(2);
    stopClockAfter(10);
    expect(await tokens.get()).toBe('dev:any');
    expect(requestToken).toHaveBeenCalledTimes(3);
  });

  it('is not used again after an API has rejected it', async () => {
    const { tokens, requestToken } = clientOf(['any']);
    tokens.discard(await tokens.get());
    requestToken.mockRejectedValue(limited);
    await expect(tokens.get()).rejects.toBe(limited);
  });
});

describe('a TokenClient when the browser has another customer than before', () => {
  it('does not repeat a call that got 401, and calls onCustomerChange once', async () => {
    const { tokens, onCustomerChange } = clientOf(['old', 'new']);
    const api = await startScriptedServer([401, 200]);
    await expect(tokens.fetch(api.url)).rejects.toMatchObject(CHANGED);
    expect(api.requests()).toBe(1);
    expect(onCustomerChange.mock.calls).toEqual([['new']]);
    expect((await tokens.fetch(api.url)).status).toBe(200);
    expect(onCustomerChange).toHaveBeenCalledOnce();
  });

  it('does not repeat a call whose token expired while it waited after 429', async () => {
    const { tokens, onCustomerChange } = clientOf(['old', 'new'], TokenClient, 1);
    const api = await startScriptedServer([429, 200]);
    await expect(tokens.fetch(api.url)).rejects.toMatchObject(CHANGED);
    expect(api.requests()).toBe(1);
    expect(onCustomerChange.mock.calls).toEqual([['new']]);
  });

  it('does not send a call that begins before the page knows the new customer', async () => {
    const { tokens, onCustomerChange } = clientOf(['old', 'new']);
    const api = await startScriptedServer([200]);
    await tokens.get();
    tokens.discard();
    await expect(tokens.fetch(api.url)).rejects.toMatchObject(CHANGED);
    expect(api.requests()).toBe(0);
    expect(onCustomerChange.mock.calls).toEqual([['new']]);
  });

  it('rejects with cookies_blocked, and calls nothing, if each request has another customer', async () => {
    const { tokens, onCustomerChange, requestToken } = clientOf(['first', 'second', 'third', 'fourth', 'fifth']);
    const api = await startScriptedServer([401, 200]);
    await expect(tokens.fetch(api.url)).rejects.toMatchObject({ error: 'cookies_blocked', isTemporary: false });
    await expect(tokens.get()).rejects.toMatchObject({ error: 'cookies_blocked' });
    expect(requestToken).toHaveBeenCalledTimes(5);
    expect(api.requests()).toBe(1);
    expect(onCustomerChange).not.toHaveBeenCalled();
  });

  it('repeats a call with a new token of the same customer', async () => {
    const { tokens, onCustomerChange, requestToken } = clientOf(['same']);
    expect((await tokens.fetch((await startScriptedServer([401, 200])).url)).status).toBe(200);
    expect(requestToken).toHaveBeenCalledTimes(2);
    expect(onCustomerChange).not.toHaveBeenCalled();
  });
});

describe('a TokenClient after a tab has left its customer', () => {
  it('sends the request to leave after the response to a token request, also on a page without locks', async () => {
    const tokens = new TokenClient({ url: 'http://any', clientId: 'any', organizationId: 'any' });
    const [sent, tokenResponse] = [vi.fn(), deferred<Response>()];
    const token = (entity_id: string) => Response.json({ access_token: `dev:${entity_id}`, entity_id, expires_in: 60 });
    vi.stubGlobal('fetch', (url: string) => {
      sent(new URL(url).pathname);
      if (sent.mock.calls.length === 1) return tokenResponse.promise;
      return Promise.resolve(url.endsWith('/token') ? token('next') : Response.json({}));
    });
    const first = tokens.entityId();
    const left = leaveThisBrowser(tokens);
    await setImmediate();
    expect(sent.mock.calls).toEqual([['/v2/customer/token']]);
    tokenResponse.resolve(token('earlier'));
    expect(await first).toBe('earlier');
    await left;
    expect(await tokens.entityId()).toBe('next');
    const paths = ['/v2/customer/token', '/v2/customer/forget', '/v2/customer/token'];
    expect(sent.mock.calls.flat()).toEqual(paths);
  });

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
