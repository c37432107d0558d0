import { approveMove, type FinishOptions, type Move, type NewDevice, type TokenSource } from './move.js';
import { request, type TokenResponse, withoutSlash } from './request.js';
import { RequestError, withRequestErrors } from './request-error.js';
import { challengeOf, codeOf } from './verifier.js';

const POLL_INTERVAL_MS = 2_000;

/** A room of your backend, which connects a computer and a phone. */
export interface Room {
  /** The page shows the id in a QR code. */
  id: string;
  /** @internal */
  url: string;
  /** @internal */
  headers: Record<string, string>;
  /** @internal */
  isApproved?: boolean;
  /** @internal */
  isClosed?: boolean;
  /** @internal */
  move?: Move;
}

/** On the computer. */
export function openRoom(roomsUrl: string): Promise<Room> {
  return withRequestErrors(async () => {
    const url = withoutSlash(roomsUrl);
    const { room: id, ownerSecret } = await request<{ room: string; ownerSecret: string }>(url, {});
    return { id, url: `${url}/${id}`, headers: { 'X-Owner-Secret': ownerSecret } };
  });
}

/**
 * On the computer. `askUser` gets the code of the phone, and resolves to true if the user agrees. Resolves to the
 * result of `approveMove`, or to undefined if the user denies the move or the page calls `closeRoom`. After a temporary
 * error the room stays open: the page may call the function again with the same room. A user who has agreed is not
 * asked again.
 */
export function sendMove(
  room: Room,
  tokens: TokenSource,
  askUser: (code: string) => Promise<boolean>,
): Promise<Move | undefined> {
  return withRequestErrors(async () => {
    try {
      const { clientId, challenge } = await waitFor(room.url, 'challenge');
      room.isApproved ||= await askUser(await roomCodeOf(room.id, challenge));
      if (!room.isApproved) await closeRoom(room);
      if (room.isClosed) return undefined;
      room.move ??= await approveMove(tokens, clientId, challenge);
      await setTransferToken(room, room.move.transferToken);
      return room.move;
    } catch (error) {
      if (room.isClosed) return undefined;
      if (!(error instanceof RequestError && error.isTemporary)) await closeRoom(room);
      throw error;
    }
  });
}

/** Cancels a move on the computer, also while its page closes. The phone gets `room_closed`. */
export async function closeRoom(room: Room): Promise<void> {
  room.isClosed = true;
  await setTransferToken(room, undefined).catch(() => undefined); // the room also closes after 10 minutes
}

function setTransferToken({ url, headers }: Room, transferToken: string | undefined) {
  return request(`${url}/transfer-token`, { method: 'PUT', headers, body: { transferToken }, keepalive: true });
}

export interface ReceiveOptions extends FinishOptions {
  /** Gets the code that the user compares with that of the computer. */
  showCode: (code: string) => void;
  /** Cancels the wait for the computer. */
  signal?: AbortSignal | undefined;
}

/**
 * On the phone, after its user has agreed. The page or app may call the function again after a reload, a restart or a
 * temporary error.
 */
export function receiveMove(
  roomUrl: string,
  device: NewDevice,
  { showCode, replace, signal }: ReceiveOptions,
): Promise<TokenResponse> {
  return withRequestErrors(async () => {
    const url = withoutSlash(roomUrl);
    const id = decodeURIComponent(url.split('/').at(-1) ?? '');
    const challenge = await device.beginMove(id);
    try {
      await request(`${url}/challenge`, { method: 'PUT', body: { challenge, clientId: device.clientId } });
    } catch (error) {
      // an attacker who has taken the room must not learn a challenge that this device uses again
      if ((error as RequestError).error === 'room_taken') await device.cancelMove();
      throw error;
    }
    showCode(await roomCodeOf(id, challenge)); // after the room has it, so that no user compares another one
    const { transferToken } = await waitFor(url, 'transferToken', signal);
    return device.finishMove(transferToken, { replace });
  });
}

/**
 * The code is bound to the room, so that an attacker cannot search challenges with equal codes before the room is open.
 */
async function roomCodeOf(room: string, challenge: string): Promise<string> {
  return codeOf(await challengeOf(`${room} ${challenge}`));
}

interface RoomContent {
  clientId: string;
  challenge: string;
  transferToken: string;
}

/** Resolves when the room has the field. Rejects with `room_closed` when the room is closed or 10 minutes old. */
async function waitFor(roomUrl: string, field: keyof RoomContent, signal?: AbortSignal): Promise<RoomContent> {
  for (;;) {
    if (signal?.aborted) throw new RequestError({ error: 'move_cancelled' });
    const room = await request<RoomContent>(roomUrl, { method: 'GET' });
    if (room[field]) return room;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}
