import type { ServerResponse } from 'node:http';

/** Aborts when the client disconnects before it has got the whole response. */
export function disconnectSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  if (response.destroyed) controller.abort();
  else response.once('close', () => controller.abort());
  return controller.signal;
}
