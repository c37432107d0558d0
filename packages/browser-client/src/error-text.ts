import { asRequestError } from './request-error.js';

const BEGIN_AGAIN = 'Begin again on both devices.';

/** Those of moves are also in docs/integrating/second-device.md. */
const TEXTS: Record<string, string> = {
  customer_changed: 'The message was not sent, because the chat has changed. Reload the page.',
  cookies_blocked: 'Your browser blocks the cookies of this chat. Allow them to use the chat.',
  identity_conflict: 'This device has a chat of its own. Replace it?',
  moved_browser: 'This chat began on another device. Log out everywhere there.',
  move_cancelled: '',
  move_expired: `This move has expired. ${BEGIN_AGAIN}`,
  move_not_begun: 'Look at your other tabs, or begin again on both devices.',
  move_uncertain: `The connection failed. ${BEGIN_AGAIN}`,
  no_customer: 'Move your chat to this app again.',
  other_customer: 'Reload this page and begin again.',
  room_closed: `The move was denied or took too long. ${BEGIN_AGAIN}`,
  origin_not_registered: 'This page may not show the chat.',
  room_taken: `Another device has used this link or QR code. Deny the move on your computer. ${BEGIN_AGAIN}`,
  store_failed: 'Unlock your phone and begin again.',
};

/** What an English page shows for an error of this package. Any other error has the text of `unexpected`. */
export function errorText(cause: unknown): string {
  const { error, isTemporary, retryAfterSeconds, requestId } = asRequestError(cause);
  const text = TEXTS[error];
  if (text !== undefined) return text;
  if (retryAfterSeconds) return `Please try again in ${retryAfterSeconds} second${retryAfterSeconds === 1 ? '' : 's'}.`;
  if (isTemporary) return 'The chat is not reachable. Please try again.';
  return `The chat does not work at the moment: ${requestId ?? error}`;
}
