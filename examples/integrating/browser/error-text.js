/** What the page shows for a `RequestError`. */
export function errorText({ error, isTemporary, retryAfterSeconds, requestId }) {
  if (error === 'customer_changed') return 'The message was not sent, because the chat has changed. Reload the page.';
  if (retryAfterSeconds) return `Please try again in ${retryAfterSeconds} seconds.`;
  if (isTemporary) return 'The chat is not reachable. Please try again.';
  return `The chat does not work at the moment: ${requestId ?? error}`;
}
