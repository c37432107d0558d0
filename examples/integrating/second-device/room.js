import { RequestError, request } from '../browser/request.js';
import { codeOf } from './new-browser.js';
import { approveMove } from './old-device.js';

const POLL_INTERVAL_MS = 2_000;

/** On the computer. The page shows `id` of the resolved room in a QR code. */
export async function openRoom(roomsUrl) {
  const { room: id, ownerSecret } = await request(roomsUrl, {});
  return { id, url: `${roomsUrl}/${id}`, headers: { 'X-Owner-Secret': ownerSecret } };
}

/**
 * On the computer. `askUser` gets the code of the phone, and resolves to true if the user agrees. Resolves to the
 * result of `approveMove`, or to undefined if the user denies the move. After a temporary error the room stays open:
 * the page may call the function again with the same room.
 */
export async function sendMove(room, tokens, askUser) {
  const { clientId, challenge } = await waitFor(room.url, 'challenge');
  try {
    room.isApproved ||= await askUser(codeOf(challenge));
    if (room.isApproved) room.move ??= await approveMove(tokens, clientId, challenge);
  } catch (error) {
    if (!error.isTemporary) await closeRoom(room);
    throw error;
  }
  if (!room.move) await closeRoom(room);
  else await setTransferToken(room, room.move.transferToken);
  return room.move;
}

/** Cancels a move on the computer. The phone gets `room_closed`. */
export async function closeRoom(room) {
  await setTransferToken(room, undefined).catch(() => undefined); // the room also closes after 10 minutes
}

function setTransferToken({ url, headers }, transferToken) {
  return request(`${url}/transfer-token`, { method: 'PUT', headers, body: { transferToken } });
}

/**
 * On the phone, after its user has agreed. `device` is a `NewBrowser` or an `AppSession`. `signal` cancels the wait for
 * the computer. The page or app may call the function again after a reload, a restart or a temporary error.
 */
export async function receiveMove(roomUrl, device, { showCode, replace, signal }) {
  const challenge = await device.beginMove();
  showCode(codeOf(challenge));
  await request(`${roomUrl}/challenge`, { method: 'PUT', body: { challenge, clientId: device.clientId } });
  const { transferToken } = await waitFor(roomUrl, 'transferToken', signal);
  return device.finishMove(transferToken, { replace });
}

/** Resolves when the room has the field. Rejects with `room_closed` when the room is closed or 10 minutes old. */
async function waitFor(roomUrl, field, signal) {
  for (;;) {
    if (signal?.aborted) throw new RequestError({ error: 'move_cancelled' });
    const room = await request(roomUrl, { method: 'GET' });
    if (room[field]) return room;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}
