import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  closeRoom,
  endToken,
  type Move,
  type NewDevice,
  openRoom,
  type Room,
  receiveMove,
  sendMove,
  type TokenResponse,
} from 'browser-client';
import express from 'express';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { refreshingRegistry } from '../support/customer-refresh.js';
import { loadExample } from '../support/load-example.js';
import { stubPageGlobals } from '../support/page-globals.js';
import { pageTokens } from '../support/page-tokens.js';
import { startScriptedServer } from '../support/scripted-server.js';
import { secureStorage } from '../support/secure-storage.js';
import { skipWaits } from '../support/skipped-waits.js';
import { ACME_SITE } from '../support/test-registry.js';
import { INFO } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const { AppSession } = await loadExample('second-device/app.js');
const { moveRooms } = await loadExample('second-device/relay.js');

skipWaits();
stubPageGlobals();
const service = useService({ registry: refreshingRegistry() });
let relay: Server;
let rooms: string;
beforeEach(async () => {
  // one proxy, so that a test may send requests from other networks
  const backend = express().set('trust proxy', 1).use('/rooms', moveRooms());
  relay = createServer(backend).listen(0, '127.0.0.1');
  await once(relay, 'listening');
  rooms = `http://127.0.0.1:${(relay.address() as AddressInfo).port}/rooms`;
});
afterEach(() => {
  relay.closeAllConnections();
  relay.close();
});

async function send(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
  const response = await fetch(rooms + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  return { status: response.status, body: (await response.json()) as Record<string, string> };
}

const tokensAt = (url: string) => pageTokens(service, url);

function phone() {
  return new AppSession({ url: service.url, clientId: ACME_SITE, store: secureStorage() });
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
    expect(showCode.mock.lastCall).toEqual(askUser.mock.lastCall);
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
    const device = {
      clientId: ACME_SITE,
      beginMove: async () => 'a'.repeat(43),
      finishMove: async (code: string) => code as unknown as TokenResponse,
    };
    const received = receive(room, device).catch(({ error }: { error: string }) => error);
    const send = () => sendMove(room, tokensAt(server.url), askUser);
    await expect(send()).rejects.toHaveProperty('status');
    if (step === 'limited') await send();
    expect(await received).toBe(expected);
    expect(askUser).toHaveBeenCalledOnce();
  });

  it('lets the same phone scan the QR code again, and rejects another phone', async () => {
    const room = await openRoom(rooms);
    const [first, other] = [phone(), phone()];
    const [scan, again] = [receive(room, first), receive(room, first)];
    for (const each of [scan, again]) each.catch(() => undefined);
    await expect.poll(async () => (await send('GET', `/${room.id}`)).body.challenge).toBeDefined();
    await expect(receive(room, other)).rejects.toMatchObject({ status: 409, error: 'room_taken' });
    expect(await Promise.race([again, new Promise((resolve) => setImmediate(resolve, 'waiting'))])).toBe('waiting');
    const later = Date.now() + 600_001;
    vi.spyOn(Date, 'now').mockReturnValue(later);
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
    const later = Date.now() + 600_001;
    vi.spyOn(Date, 'now').mockReturnValue(later);
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
    const later = Date.now() + 600_001;
    vi.spyOn(Date, 'now').mockReturnValue(later);
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
    const later = Date.now() + 600_001;
    vi.spyOn(Date, 'now').mockReturnValue(later);
    expect((await send('GET', `/${room}`)).body).toEqual({ error: 'room_closed' });
  });
});
