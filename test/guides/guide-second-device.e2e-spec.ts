import { createServer, type Server } from 'node:http';
import {
  approveMove,
  challengeOf,
  closeRoom,
  codeOf,
  endToken,
  logOutEverywhere,
  type Move,
  NewBrowser,
  type NewDevice,
  openRoom,
  type Room,
  receiveMove,
  sendMove,
  TokenClient,
  type TokenResponse,
} from '@customer-authorization/browser-client';
import express from 'express';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { claimsOf, pkce } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TestBrowser, TOKEN } from '../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stayOf } from '../support/customer-refresh.js';
import { listen } from '../support/listen.js';
import { loadExample } from '../support/load-example.js';
import { read } from '../support/project-files.js';
import { type ScriptedStep, startScriptedServer } from '../support/scripted-server.js';
import { skipWaits, stubPageGlobals } from '../support/stubbed-pages.js';
import { ACME, ACME_SITE, testRegistry } from '../support/test-registry.js';
import { INFO, infoStatus, newCustomer, transferToken } from '../support/transfers.js';
import { serviceOfTest, useService } from '../support/use-service.js';

const { AppSession } = await loadExample('second-device/app.js');
const { moveRooms } = await loadExample('second-device/relay.js');
const ORIGIN = 'https://shop.example';
const UNCERTAIN = { error: 'move_uncertain', isTemporary: false, mayHaveSucceeded: true };

const waits = skipWaits();
stubPageGlobals();
const service = useService({ registry: refreshingRegistry() });

/** The secure storage of a phone. `token` is the stored refresh token. */
function secureStorage(token?: string) {
  const items = new Map<string, string>(token ? [['refresh-token', token]] : []);
  return {
    get token() {
      return items.get('refresh-token');
    },
    read: async (name: string) => items.get(name),
    write: async (name: string, text: string) => void items.set(name, text),
    remove: async (name: string) => void items.delete(name),
  };
}

const appAt = (url: string, store: object = secureStorage()) => new AppSession({ url, clientId: ACME_SITE, store });
const browserAt = (url: string, _store?: object) =>
  new NewBrowser(new TokenClient({ url, clientId: ACME_SITE, organizationId: ACME }));
const phone = () => appAt(service.url);

/** Moves the clock beyond this time. */
function passMinutes(minutes: number): void {
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() + minutes * 60_000 + 1);
}

/** Stands for the token client of a page whose browser has one customer. `url` is that of the service of the page. */
function tokensAt(url: string) {
  const browser = new TestBrowser(service);
  const requestToken = async () => (await browser.visit()).body as { access_token: string; entity_id: string };
  return { url, requestToken, get: async () => (await requestToken()).access_token };
}

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

  it('repeats a call after a 401 with a token of the same customer, and never with that of another one', async () => {
    const app = appAt(service.url);
    const { access_token: rejected, entity_id } = await app.finishMove(await approve(app));
    const renewed = await app.token(rejected);
    expect(renewed).not.toBe(rejected);
    expect(claimsOf(renewed).sub).toBe(entity_id);
    const other = await newCustomer(service);
    await app.finishMove(await approve(app, other), { replace: true });
    for (const ended of [rejected, renewed])
      await expect(app.token(ended)).rejects.toMatchObject({ error: 'customer_changed' });
    expect(claimsOf(await app.token()).sub).toBe(other.entity_id);
  });

  it('does not store the token of a renewal that ends after another process has stored another customer', async () => {
    const store = secureStorage();
    const app = appAt(service.url, store);
    await app.finishMove(await approve(app));
    const [earlier, other] = [store.token as string, await stayOf(service)];
    const restarted = appAt(service.url, store);
    vi.spyOn(store, 'read').mockImplementationOnce(async () => {
      await store.write('refresh-token', other.refresh_token); // of the other process
      return earlier;
    });
    expect(claimsOf(await restarted.token()).sub).toBe(other.entity_id);
    expect((await refreshCustomer(service, store.token as string)).body.entity_id).toBe(other.entity_id);
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
    ['does not repeat an exchange after an error of a proxy', ['proxy'], 1, { status: 502, ...UNCERTAIN }],
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
    await expect(device.finishMove('dev:any')).rejects.toMatchObject({ status: 0, ...UNCERTAIN });
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
    await expect(device.finishMove('dev:any')).rejects.toMatchObject({ status: 429, retryAfterSeconds: 60 });
    expect(server.requests()).toBe(2);
  });

  it('has the same challenge after a reload or restart', async () => {
    const store = secureStorage();
    const challenge = await deviceAt('http://localhost', store).beginMove();
    expect(await deviceAt('http://localhost', store).beginMove()).toBe(challenge);
  });

  it('has another challenge for each room, and after a move was cancelled', async () => {
    const device = deviceAt('http://localhost');
    const challenge = await device.beginMove('room-1');
    expect(await device.beginMove('room-1')).toBe(challenge);
    const next = await device.beginMove('room-2');
    expect(next).not.toBe(challenge);
    await device.cancelMove();
    expect(await device.beginMove('room-2')).not.toBe(next);
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
    passMinutes(60);
    await expect(tab.finishMove('dev:any')).rejects.toMatchObject({ error: 'move_expired' });
    expect(await tab.beginMove()).not.toBe(challenge);
    expect(server.requests()).toBe(0);
  });
});

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
    const device = phone();
    const { bearer, transferToken } = await approveMove(tokens, ACME_SITE, await device.beginMove());
    service.clock.advance({ seconds: 3_000 });
    const { access_token } = await device.finishMove(transferToken);
    service.clock.advance({ seconds: 28_800 - 3_000 });
    expect(await Promise.all([bearer, access_token].map((token) => infoStatus(service, token)))).toEqual([401, 200]);
    await endToken(tokens, bearer);
    expect(await infoStatus(service, access_token)).toBe(401);
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

it.each([
  ['shop-site', 'browser', { origin: ORIGIN }],
  ['shop-app', 'refresh_token', {}],
])('second-device/registry.yaml lets a page move its customer to %s', async (client_id, remember, headers) => {
  const { clients } = parse(read('examples/integrating/second-device/registry.yaml'));
  const service = await serviceOfTest({ registry: { ...testRegistry(), clients } });
  const page = { grant_type: 'cookie', response_type: 'token', client_id: 'shop-site', organization_id: ACME };
  const { entity_id, access_token } = (await service.post(TOKEN, page, { origin: ORIGIN })).body;
  const { verifier: code_verifier, asked } = pkce();
  const transfer = { bearer_type: 'customer', client_id, ...asked };
  const approval = await service.post('/v2/customer/identity_transfer', transfer, {
    ...bearer(access_token),
    origin: ORIGIN,
  });
  const code = approval.body.identity_transfer_token;
  const exchange = { grant_type: 'identity_token', client_id, code, code_verifier, remember };
  const { status, body } = await service.post(TOKEN, exchange, headers);
  expect({ status, body }).toMatchObject({ status: 200, body: { entity_id } });
  if (remember === 'refresh_token')
    expect((await refreshCustomer(service, body.refresh_token, { client_id })).status).toBe(200);
});

let relay: Server;
let rooms: string;
beforeEach(async () => {
  // one proxy, so that a test may send requests from other networks
  const backend = express().set('trust proxy', 1).use('/rooms', moveRooms());
  relay = createServer(backend);
  rooms = `${await listen(relay)}/rooms`;
});
afterEach(() => {
  relay.closeAllConnections();
  relay.close();
});

async function send(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
  const response = await fetch(rooms + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  return { status: response.status, body: (await response.json()) as Record<string, string> };
}

/** A device that scans the QR code of a room. */
const receive = (room: Room, device: NewDevice = phone(), options: object = {}) =>
  receiveMove(room.url, device, { showCode: () => undefined, ...options });

const agree = async () => true;

describe('the rooms of browser-client with second-device/relay.js', () => {
  it('moves a customer from a computer to a phone, and both show the same code', async () => {
    const [showCode, askUser] = [vi.fn(), vi.fn(agree)];
    const tokens = tokensAt(service.url);
    const room = await openRoom(rooms);
    const move = sendMove(room, tokens, askUser);
    const { access_token } = await receive(room, phone(), { showCode });
    const { challenge } = (await send('GET', `/${room.id}`)).body;
    expect(showCode.mock.lastCall).toEqual([codeOf(await challengeOf(`${room.id} ${challenge}`))]);
    expect(askUser.mock.lastCall).toEqual(showCode.mock.lastCall);
    const { bearer } = (await move) as Move;
    const infoOf = (each: string) => service.send('GET', INFO, { authorization: `Bearer ${each}` });
    expect((await infoOf(access_token)).body.entity_id).toBe((await infoOf(bearer)).body.entity_id);
    await endToken(tokens, bearer);
    expect((await infoOf(access_token)).status).toBe(401);
  });

  it.each([
    ['stays open after a temporary error, and the second call does not ask the user again', 'limited', 'dev:transfer'],
    ['closes after a final error', { error: 'invalid_grant' }, 'room_closed'],
  ] as const)('%s', async (_, step, expected) => {
    const server = await startScriptedServer([step, { status: 200, identity_transfer_token: 'dev:transfer' }]);
    const askUser = vi.fn(agree);
    const room = await openRoom(rooms);
    const finishMove = async (code: string) => code as unknown as TokenResponse;
    const device = {
      clientId: ACME_SITE,
      beginMove: async () => 'a'.repeat(43),
      cancelMove: async () => {},
      finishMove,
    };
    const received = receive(room, device).catch(({ error }: { error: string }) => error);
    const send = () => sendMove(room, tokensAt(server.url), askUser);
    await expect(send()).rejects.toHaveProperty('status');
    if (step === 'limited') await send();
    expect(await received).toBe(expected);
    expect(askUser).toHaveBeenCalledOnce();
  });

  it('lets the same phone scan the QR code again, and rejects another phone, which shows no code', async () => {
    const room = await openRoom(rooms);
    const [first, other] = [phone(), phone()];
    const [scan, again] = [receive(room, first), receive(room, first)];
    for (const each of [scan, again]) each.catch(() => undefined);
    await expect.poll(async () => (await send('GET', `/${room.id}`)).body.challenge).toBeDefined();
    const [challenge, showCode] = [await other.beginMove(room.id), vi.fn()];
    await expect(receive(room, other, { showCode })).rejects.toMatchObject({ status: 409, error: 'room_taken' });
    expect(showCode).not.toHaveBeenCalled();
    expect(await other.beginMove(room.id), 'an attacker knows the first challenge').not.toBe(challenge);
    expect(await Promise.race([again, new Promise((resolve) => setImmediate(resolve, 'waiting'))])).toBe('waiting');
    passMinutes(10);
    await expect(again).rejects.toMatchObject({ error: 'room_closed' });
  });

  it('closes the room when the user of the computer denies the move', async () => {
    const room = await openRoom(rooms);
    const move = sendMove(room, tokensAt(service.url), async () => false);
    await expect(receive(room)).rejects.toMatchObject({ status: 404, error: 'room_closed' });
    expect(await move).toBeUndefined();
  });

  it('rejects on a phone that cancels the wait for the computer', async () => {
    const aborted = { signal: AbortSignal.abort() };
    const received = receive(await openRoom(rooms), phone(), aborted);
    await expect(received).rejects.toMatchObject({ error: 'move_cancelled' });
  });

  it.each(['waits for the phone', 'asks its user'])(
    'ends when the page of the computer cancels while it %s',
    async (step) => {
      const sent = vi.spyOn(globalThis, 'fetch');
      const server = await startScriptedServer([]);
      const room = await openRoom(rooms);
      const cancelAndAgree = () => closeRoom(room).then(agree);
      const move = sendMove(room, tokensAt(server.url), cancelAndAgree);
      if (step === 'waits for the phone') await closeRoom(room);
      await expect(receive(room)).rejects.toMatchObject({ status: 404, error: 'room_closed' });
      expect(await move).toBeUndefined();
      expect(server.requests()).toBe(0);
      const request = [`${room.url}/transfer-token`, expect.objectContaining({ keepalive: true })];
      expect(sent).toHaveBeenCalledWith(...request);
    },
  );

  it('rejects on the computer if the room is 10 minutes old', async () => {
    const room = await openRoom(rooms);
    passMinutes(10);
    await expect(sendMove(room, tokensAt(service.url), agree)).rejects.toMatchObject({ error: 'room_closed' });
  });
});

describe('second-device/relay.js', () => {
  it.each([
    ['an IPv4 address', ['192.0.2.1', '::ffff:192.0.2.1', '192.0.2.1'], '192.0.2.2'],
    ['a /48 of IPv6', ['2001:db8::1', '2001:db8:0:1::2', '2001:0DB8:0:ffff:0:1::'], '2001:db8:1::1'],
  ])('has at most 100 open rooms of %s, and opens rooms of other networks', async (_, network, other) => {
    const openFrom = (ip = '') => send('POST', '', undefined, { 'X-Forwarded-For': ip });
    const responses = await Promise.all(Array.from({ length: 300 }, (_, each) => openFrom(network[each % 3])));
    expect(responses.filter(({ status }) => status === 201)).toHaveLength(100);
    expect(responses.filter(({ status, body }) => status === 429 && body.error === 'too_many_rooms')).toHaveLength(200);
    expect((await openFrom(other)).status).toBe(201);
    passMinutes(10);
    expect((await openFrom(network[0])).status).toBe(201);
  });

  it.each(['a:b', ':::', '1:2', 'fe80::1%eth0', '::ffff:x'])(
    'opens a room for a caller whose address is %s',
    async (ip) => {
      expect((await send('POST', '', undefined, { 'X-Forwarded-For': ip })).status).toBe(201);
    },
  );

  it('takes one challenge per room, and a transfer token of the owner only', async () => {
    const { room, ownerSecret = '' } = (await send('POST', '')).body;
    const phone = { challenge: 'a'.repeat(43), clientId: ACME_SITE };
    const other = { ...phone, challenge: 'b'.repeat(43) };
    expect((await send('PUT', `/${room}/challenge`, { ...phone, challenge: 'short' })).status).toBe(400);
    expect((await send('PUT', `/${room}/challenge`, phone)).status).toBe(200);
    expect((await send('PUT', `/${room}/challenge`, phone)).status).toBe(200);
    expect((await send('PUT', `/${room}/challenge`, other)).body).toEqual({ error: 'room_taken' });
    const transferToken = 'dev:transfer';
    expect((await send('PUT', `/${room}/transfer-token`, { transferToken })).body).toEqual({ error: 'not_owner' });
    const owner = { 'X-Owner-Secret': ownerSecret };
    expect((await send('PUT', `/${room}/transfer-token`, { transferToken }, owner)).status).toBe(200);
    expect((await send('GET', `/${room}`)).body).toEqual({ ...phone, transferToken });
    passMinutes(10);
    expect((await send('GET', `/${room}`)).body).toEqual({ error: 'room_closed' });
  });
});
