import {
  approveMove,
  challengeOf,
  closeRoom,
  codeOf,
  endToken,
  exchangeOnce,
  leaveThisBrowser,
  logOutEverywhere,
  logOutMovedDevices,
  NewBrowser,
  openRoom,
  receiveMove,
  resumeSignIn,
  sendMove,
  signIn,
  signOut,
} from '@customer-authorization/browser-client';
import { expect, it, vi } from 'vitest';
import { stubPageGlobals } from '../../../test/support/stubbed-pages.js';

const BOTH = ['locks', 'storage'];
const LOCKS = ['locks'];
const STORAGE = ['storage'];

const SERVICE = 'https://any.example';

/** A module of its own, because it opens the channel of the tabs only once. */
const TOKEN_CLIENT = '../src/token-client.ts?blocked';
const { TokenClient } = (await import(TOKEN_CLIENT)) as typeof import('@customer-authorization/browser-client');
const tokens = () => new TokenClient({ url: SERVICE, clientId: 'any', organizationId: 'any' });
const device = () => new NewBrowser(tokens());
const room = () => ({ id: 'any', url: `${SERVICE}/rooms/any`, headers: {} });

/** Each function of the package that can fail, what it needs of the browser, and a call. */
const CALLS: [name: string, needs: string[], call: () => Promise<unknown>][] = [
  ['get', LOCKS, () => tokens().get()],
  ['entityId', LOCKS, () => tokens().entityId()],
  ['fetch', LOCKS, () => tokens().fetch(SERVICE)],
  ['requestToken', LOCKS, () => tokens().requestToken()],
  ['leaveThisBrowser', LOCKS, () => leaveThisBrowser(tokens())],
  ['logOutEverywhere', LOCKS, () => logOutEverywhere(tokens())],
  ['logOutMovedDevices', LOCKS, () => logOutMovedDevices(tokens())],
  ['signIn', BOTH, () => signIn(tokens(), SERVICE)],
  ['resumeSignIn', BOTH, () => resumeSignIn(tokens(), SERVICE)],
  ['signOut', LOCKS, () => signOut(tokens(), SERVICE)],
  ['approveMove', LOCKS, () => approveMove(tokens(), 'any', 'any')],
  ['sendMove', LOCKS, () => sendMove(room(), tokens(), async () => true)],
  ['exchangeOnce', LOCKS, () => exchangeOnce(SERVICE, { remember: 'browser' }, () => undefined)],
  ['beginMove', STORAGE, () => device().beginMove()],
  ['cancelMove', STORAGE, () => device().cancelMove()],
  ['finishMove', STORAGE, () => device().finishMove('dev:any')],
  [
    'receiveMove',
    STORAGE,
    () => receiveMove(SERVICE, device(), { showCode: () => undefined, signal: AbortSignal.abort() }),
  ],
  ['openRoom', [], () => openRoom(SERVICE)],
  ['closeRoom', [], () => closeRoom(room())],
  ['endToken', [], () => endToken(tokens(), 'any')],
  ['challengeOf', [], () => challengeOf('any')],
];

stubPageGlobals();

function respondWith(json: object | null, status = 200): void {
  vi.stubGlobal('fetch', async () => Response.json(json, { status }));
}

function refuse(): never {
  throw new DOMException('Access is denied', 'SecurityError');
}

class RefusedChannel {
  constructor() {
    refuse();
  }
}

const BLOCKED = ['RequestError', 'cookies_blocked'];

it.each([
  ['cookies', BOTH],
  ['locks', LOCKS],
  ['storage', STORAGE],
])('every function that needs them rejects with cookies_blocked if %s throw', async (what, refused) => {
  respondWith({ assertion: 'any', room: 'any', ownerSecret: 'any', clientId: 'any', challenge: 'c'.repeat(43) });
  if (refused.includes('locks')) vi.stubGlobal('navigator', { locks: { request: refuse } });
  if (refused.includes('storage'))
    Object.defineProperty(globalThis, 'localStorage', { get: refuse, configurable: true });
  if (what === 'cookies') vi.stubGlobal('BroadcastChannel', RefusedChannel);
  for (const [name, needs, call] of CALLS) {
    const error = await call().then(
      () => 'resolved',
      ({ name, error }) => [name, error],
    );
    const isRefused = needs.some((each) => refused.includes(each));
    const expected = isRefused ? BLOCKED : expect.toSatisfy((other) => other === 'resolved' || other[0] === BLOCKED[0]);
    expect({ name, error }).toEqual({ name, error: expected });
  }
});

const lost = { request: () => Promise.reject(new DOMException('lost', 'AbortError')) };
const removeCrypto = () => vi.stubGlobal('crypto', { getRandomValues: (bytes: Uint8Array) => bytes });
const fail = () => {
  throw new Error('full');
};

it.each<[what: string, breaks: () => unknown, call: () => Promise<unknown>]>([
  ['locks', () => vi.stubGlobal('navigator', { locks: lost }), () => tokens().get()],
  ['storage', () => localStorage.setItem('move-verifier', '{'), () => device().beginMove()],
  ['crypto', removeCrypto, () => device().beginMove()],
  ['crypto', removeCrypto, () => challengeOf('any')],
  ['texts', () => undefined, async () => codeOf('?')],
  ['rooms', () => respondWith(null), () => openRoom(SERVICE)],
  ['backends', () => respondWith(null), () => signIn(tokens(), SERVICE)],
  ['callbacks', () => respondWith({ error: 'any' }, 400), () => exchangeOnce(SERVICE, { remember: 'browser' }, fail)],
])('rejects with a RequestError that has the cause if %s fail in another way', async (_what, breaks, call) => {
  breaks();
  const failure = { name: 'RequestError', error: 'unexpected', cause: expect.any(Error) };
  await expect(call()).rejects.toMatchObject(failure);
});

it('rejects with a RequestError if the network responds with JSON of its own', async () => {
  respondWith({ portal: true });
  await expect(tokens().get()).rejects.toMatchObject({ error: 'no_response', isTemporary: true });
});
