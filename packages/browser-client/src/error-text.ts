import { asRequestError } from './request-error.js';

const TEXTS: Record<string, string> = {
  customer_changed: 'The message was not sent, because the chat has changed. Reload the page.',
  cookies_blocked: 'Your browser blocks the cookies of this chat. Allow them to use the chat.',
  room_closed: 'The move was denied or took too long. Begin again on the other device.',
  room_taken: 'This link or QR code was used before. Begin again on the other device.',
  move_uncertain: 'The connection failed. Begin again on the other device.',
};

/** What an English page shows for an error of this package. Any other error has the text of `unexpected`. */
export function errorText(cause: unknown): string {
  const { error, isTemporary, retryAfterSeconds, requestId } = asRequestError(cause);
  const text = TEXTS[error];
  if (text) return text;
  if (retryAfterSeconds) return `Please try again in ${retryAfterSeconds} second${retryAfterSeconds === 1 ? '' : 's'}.`;
  if (isTemporary) return 'The chat is not reachable. Please try again.';
  return `The chat does not work at the moment: ${requestId ?? error}`;
}
