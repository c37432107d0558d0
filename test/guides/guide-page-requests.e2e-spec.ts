import { leaveThisBrowser, logOutEverywhere, request, TokenClient } from 'browser-client';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { stubPageGlobals } from '../support/page-globals.js';
import { type ScriptedServer, type ScriptedStep, startScriptedServer } from '../support/scripted-server.js';
import { skipWaits } from '../support/skipped-waits.js';

const waits = skipWaits();
stubPageGlobals();

describe('request of browser-client', () => {
  it.each<[string, ScriptedStep[], number, object]>([
    ['repeats a request after a lost response, an error of a proxy, 429 and 503', ['closed', 'proxy', 429, 503], 4, {}],
    ['does not repeat a request that was rejected for good', [400], 1, { isTemporary: false, mayHaveSucceeded: false }],
    ['rejects at once if a rate limit lasts a minute', ['limited'], 1, { retryAfterSeconds: 60, isTemporary: true }],
    ['remembers that the response to an earlier attempt was lost', ['closed', 401], 2, { mayHaveSucceeded: true }],
    ['knows that a service that was busy did nothing', [503, 401], 2, { status: 401, mayHaveSucceeded: false }],
  ])('%s', async (_title, script, requests, fields) => {
    const server = await startScriptedServer(script);
    await expect(request(server.url, { body: {} })).rejects.toMatchObject(fields);
    expect(server.requests()).toBe(requests);
  });
});

describe('leaveThisBrowser and logOutEverywhere of browser-client', () => {
  const discardInAllTabs = vi.fn();
  const requestToken = vi.fn(async () => ({ access_token: 'dev:new' }));
  const expectNewCustomer = vi.fn();
  const fields = { validToken: 'dev:any', requestToken, expectNewCustomer, discardInAllTabs };
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

  it('logOutEverywhere renews a token that is not valid once', async () => {
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
