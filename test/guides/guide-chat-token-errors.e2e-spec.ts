import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { loadExample } from '../support/load-example.js';
import { startScriptedServer } from '../support/scripted-server.js';

describe('backend/chat-token.js without an agent token', () => {
  let tokenOfAgent: () => Promise<string>;
  const reported: Error[] = [];

  /** Starts the backend of an application. Returns a function that sends a request of its page. */
  async function startBackend() {
    const service = await startScriptedServer([200, 200]);
    const { chatToken } = await loadExample('backend/chat-token.js');
    const options = { url: service.url, clientId: 'any', session: { token: () => tokenOfAgent() }, maxWaitMs: 1_000 };
    const onError = (error: Error) => void reported.push(error);
    const app = express();
    app.use((incoming, _response, next) => {
      Object.assign(incoming, { session: { userId: 'user-1' } });
      next();
    });
    app.all('/chat-token', chatToken({ pageOrigin: 'https://shop.example', onError, ...options }));
    const server = app.listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/chat-token`;
    return () => fetch(url, { method: 'POST' });
  }

  it('responds with 500 without Retry-After if a person must act, and reports the error', async () => {
    const send = await startBackend();
    const errors = [
      { status: 400, error: 'invalid_grant' },
      { status: 401, error: 'invalid_token' },
      { error: 'no_sign_in' },
    ];
    for (const fields of errors) {
      tokenOfAgent = async () => Promise.reject(Object.assign(new Error('permanent'), fields));
      const { status, headers } = await send();
      expect([status, headers.get('retry-after')]).toEqual([500, null]);
      expect(reported.at(-1)).toMatchObject(fields);
    }
  });

  it('responds with 503 and the Retry-After of the service if the error is temporary', async () => {
    const send = await startBackend();
    const errors = [
      [{}, '2'],
      [{ status: 429, retryAfterSeconds: 60 }, '60'],
      [{ status: 502 }, '2'],
    ] as const;
    for (const [fields, retryAfter] of errors) {
      tokenOfAgent = async () => Promise.reject(Object.assign(new TypeError('fetch failed'), fields));
      const { status, headers } = await send();
      expect([status, headers.get('retry-after')]).toEqual([503, retryAfter]);
      expect(headers.get('access-control-expose-headers')).toBe('Retry-After');
    }
  });

  it('responds with 503 while a renewal of the agent token goes on, and with the token afterwards', async () => {
    const send = await startBackend();
    let renew = (_token: string) => {};
    const renewal = new Promise<string>((resolve) => {
      renew = resolve;
    });
    tokenOfAgent = () => renewal;
    expect((await send()).status).toBe(503);
    renew('dev:any');
    expect((await send()).status).toBe(200);
  });
});

describe('logError of fetch-with-retries.js', () => {
  it('writes a line that an alert can find, and the cause of a failed connection', async () => {
    const { logError } = await loadExample('fetch-with-retries.js');
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    logError(Object.assign(new Error('no agent token: 400 invalid_grant'), { status: 400, error: 'invalid_grant' }));
    logError(new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } }));
    logError(new Error('no row'), 90);
    expect(written.mock.calls.flat()).toEqual([
      'permanent error: no agent token: 400 invalid_grant\n',
      'temporary error: fetch failed (ECONNREFUSED)\n',
      'temporary error: no row, no success for 90 s\n',
    ]);
    written.mockRestore();
  });
});
