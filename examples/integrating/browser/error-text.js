const TEXTS = {
  customer_changed: 'The message was not sent, because the chat has changed. Reload the page.',
  cookies_blocked: 'Your browser blocks the cookies of this page. Allow them to use the chat.',
  room_closed: 'The move was denied or took too long. Begin again on the computer.',
  room_taken: 'This QR code was used before. Begin again on the computer.',
};

/** What the page shows for a `RequestError`. */
export function errorText({ error, isTemporary, retryAfterSeconds, requestId }) {
  if (TEXTS[error]) return TEXTS[error];
  if (retryAfterSeconds) return `Please try again in ${retryAfterSeconds} second${retryAfterSeconds === 1 ? '' : 's'}.`;
  if (isTemporary) return 'The chat is not reachable. Please try again.';
  return `The chat does not work at the moment: ${requestId ?? error}`;
}
