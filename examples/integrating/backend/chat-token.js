import { isTemporary, logError } from '../fetch-with-retries.js';
import { customerToken } from './customer-token.js';

const MARGIN_MS = 60_000;
const DEFAULT_DELAY_SECONDS = 2;

/**
 * Express handler that gives the page of a signed-in user a customer token. `options` are those of `customerToken`.
 * The server-side session of a user has `userId` and `signIn`, a random text that is new at each sign-in. `signOuts`
 * records each token before the page gets it. `onError` gets each error. The page gets 503 after `maxWaitMs`, while a
 * renewal of the agent token goes on.
 */
export function chatToken({ pageOrigin, signOuts, onError = logError, maxWaitMs = 4_000, ...options }) {
  return async (request, response) => {
    // before the check of the session: a preflight has no cookies, and without these headers the page cannot read a 401
    const cors = { 'Access-Control-Allow-Origin': pageOrigin, 'Access-Control-Allow-Credentials': 'true' };
    response.set({ ...cors, 'Access-Control-Expose-Headers': 'Retry-After', 'Cache-Control': 'no-store' });
    if (request.method === 'OPTIONS') return response.sendStatus(204);
    const { session, query } = request; // `session` is of your own sign-in, for example of express-session
    if (session?.userId == null) return response.status(401).json({ error: 'signed_out' });
    try {
      const { signIn, userId } = session;
      if (typeof signIn !== 'string') throw Object.assign(new Error('signIn: no string'), { error: 'no_sign_in_id' });
      let token = session.chatToken;
      // your application may sign another user in with the same session
      const isOfUser = token?.signIn === signIn && token.userId === userId;
      const isUsable = isOfUser && Date.now() < token.expiresAtMs - MARGIN_MS;
      if (!isUsable || 'renew' in query || 'separate' in query) {
        const result = await within(maxWaitMs, customerToken(options, userId));
        const { access_token, entity_id, expires_in } = result;
        token = { signIn, userId, access_token, entity_id, expiresAtMs: Date.now() + expires_in * 1000 };
        const isSignedIn = await signOuts.record(signIn, access_token, token.expiresAtMs);
        if (session.signIn !== signIn || session.userId !== userId) {
          await signOuts.endSignIn(signIn);
          throw new Error('the user of the session has changed');
        }
        if (!isSignedIn) return response.status(401).json({ error: 'signed_out' });
        if ('separate' in query) await signOuts.keep(signIn, access_token);
        else session.chatToken = token;
      }
      const expires_in = Math.floor((token.expiresAtMs - Date.now()) / 1000);
      response.json({ access_token: token.access_token, entity_id: token.entity_id, expires_in });
    } catch (error) {
      onError(error);
      if (!isTemporary(error)) return response.status(500).json({ error: 'server_error' });
      response.set('Retry-After', String(error.retryAfterSeconds ?? DEFAULT_DELAY_SECONDS));
      response.status(503).json({ error: 'temporarily_unavailable' });
    }
  };
}

async function within(maxWaitMs, promise) {
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no customer token within ${maxWaitMs} ms`)), maxWaitMs);
  });
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}
