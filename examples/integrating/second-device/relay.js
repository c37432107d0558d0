import { randomBytes } from 'node:crypto';
import { isIPv6 } from 'node:net';
import express from 'express';

const ROOM_TTL_MS = 600_000;
const MAX_ROOMS = 10_000;
const MAX_NETWORK_ROOMS = 100;
const CHALLENGE = /^[\w-]{43}$/;

/**
 * Rooms of your backend for moves from a computer to a phone. Several replicas need a shared store instead of a Map.
 * Behind proxies, set `trust proxy` of Express to the number of your proxies, not to `true`. Without it, all users have
 * the network of the proxy. With `true`, each caller chooses its network by a header.
 */
export function moveRooms() {
  const rooms = new Map();
  const router = express.Router();
  router.use(express.json({ limit: '4kb', type: '*/*' }));

  /** The computer opens a room. It shows `room` in a QR code, and only the computer knows `ownerSecret`. */
  router.post('/', ({ ip = '' }, response) => {
    const network = networkOf(ip);
    let ofNetwork = 0;
    for (const [id, room] of rooms) {
      if (room.expiresAtMs < Date.now()) rooms.delete(id);
      else if (room.network === network) ofNetwork++;
    }
    const isFull = rooms.size >= MAX_ROOMS;
    if (isFull || ofNetwork >= MAX_NETWORK_ROOMS)
      return fail(response.set('Retry-After', '60'), isFull ? 503 : 429, 'too_many_rooms');
    const [room, ownerSecret] = [randomBytes(16).toString('base64url'), randomBytes(16).toString('base64url')];
    rooms.set(room, { network, ownerSecret, expiresAtMs: Date.now() + ROOM_TTL_MS });
    response.status(201).json({ room, ownerSecret });
  });

  router.param('room', (request, response, next, id) => {
    request.room = rooms.get(id);
    if (!(Date.now() < request.room?.expiresAtMs)) return fail(response, 404, 'room_closed');
    next();
  });

  /** The phone sends its challenge, and may repeat that. Another device that scans the QR code gets 409. */
  router.put('/:room/challenge', ({ room, body }, response) => {
    const { challenge, clientId } = body ?? {};
    if (!CHALLENGE.test(challenge) || typeof clientId !== 'string') return fail(response, 400, 'invalid_challenge');
    if ((room.challenge ?? challenge) !== challenge) return fail(response, 409, 'room_taken');
    Object.assign(room, { challenge, clientId });
    response.json({});
  });

  /** The computer sends the transfer token. Without one, its user has denied the move, and the room closes. */
  router.put('/:room/transfer-token', ({ room, params, body, headers }, response) => {
    if (headers['x-owner-secret'] !== room.ownerSecret) return fail(response, 403, 'not_owner');
    if (body?.transferToken) room.transferToken = body.transferToken;
    else rooms.delete(params.room);
    response.json({});
  });

  /** Both devices ask every 2 s. A transfer token is useless without the verifier of the new device. */
  router.get('/:room', ({ room: { challenge, clientId, transferToken } }, response) => {
    response.set('Cache-Control', 'no-store').json({ challenge, clientId, transferToken });
  });
  return router;
}

/** An IPv4 address, or the /48 of an IPv6 address, because one household can have a whole /48. */
function networkOf(ip) {
  const [, ipv4] = /^::ffff:([\d.]+)$/i.exec(ip) ?? [];
  const [address] = ip.split('%', 1);
  if (ipv4 || !isIPv6(address)) return ipv4 ?? ip;
  const [left] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::'); // the canonical spelling
  return [...left.split(':'), '0', '0'].slice(0, 3).join(':');
}

function fail(response, status, error) {
  response.status(status).json({ error });
}
