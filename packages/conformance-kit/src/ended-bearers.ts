import { TOKEN } from './test-environment.js';
import type { TestService } from './test-service.js';

/** What the author of a route and a grant does, so that a proof ends with the token of its caller. */
export const STORE_DESCENT =
  'store `descent()` of the caller with the proof, and return it as `descent` of the result of the grant';

/** Ends the tokens of customers and agents. Returns the number of those that it could end. */
export async function endBearers(service: TestService, bearers: string[]): Promise<number> {
  let count = 0;
  for (const authorization of bearers) {
    const ended = await Promise.all(
      [TOKEN, '/v2/token'].map((path) => service.send('DELETE', path, { authorization })),
    );
    if (ended.some(({ status }) => status === 200)) count++;
  }
  return count;
}
