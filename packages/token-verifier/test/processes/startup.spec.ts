import { execFile } from 'node:child_process';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { VerifierTest } from '../support/started-verifier.js';

const UNREACHABLE_URL = 'http://127.0.0.1:9';
/** The limit of `ready` in tests where it must reject, and where it must resolve on a slow machine, too. */
const [REJECTING_TIMEOUT_MS, RESOLVING_TIMEOUT_MS] = [4_000, 60_000];
const STARTING_API = join(import.meta.dirname, '../support/starting-api.ts');

const test = new VerifierTest();

/** Starts a process that has nothing but a verifier, and waits until the process ends. */
function startApi(
  changes: object,
  readyTimeoutMs = REJECTING_TIMEOUT_MS,
): Promise<{ code: number | null; stderr: string }> {
  const options = JSON.stringify({ ...test.issuer.options, ...changes });
  const parameters = ['--import', 'tsx', STARTING_API, options, `${readyTimeoutMs}`];
  return new Promise((resolve) => {
    const child = execFile(process.execPath, parameters, (_error, _stdout, stderr) =>
      resolve({ code: child.exitCode, stderr }),
    );
  });
}

describe('a process that awaits ready, and has no other work', () => {
  const unreachable = () => ({
    jwksUrl: `${UNREACHABLE_URL}/keys`,
    ...test.revocations({ url: `${UNREACHABLE_URL}/oauth2/revocations` }),
  });
  const respondWith =
    (status: number, to: 'feed' | 'keys' = 'feed') =>
    () => {
      const handler: RequestListener = (_, response) => void response.writeHead(status).end();
      if (to === 'feed') test.issuer.feed.handler = handler;
      else test.issuer.jwks = handler;
      return {};
    };

  it.each<[string, () => object, RegExp]>([
    [
      'that the service is unreachable',
      unreachable,
      /the revocations were not read \(unreachable\); the keys were not read \(\w+/,
    ],
    [
      'that the credentials are wrong',
      respondWith(401),
      /the revocations were not read \(rejected_credentials, .* 401\)/,
    ],
    [
      'that the URL is that of the public port',
      respondWith(404),
      /the revocations were not read \(error_response, status 404\)/,
    ],
    ['why the keys are missing', respondWith(404, 'keys'), /the keys were not read \(the response has status 404\)/],
  ])('stays alive until ready rejects, and prints %s', async (_, arrange, message) => {
    const { code, stderr } = await startApi(arrange());
    expect(stderr).toMatch(new RegExp(`not ready: ${message.source}`));
    expect(code).toBe(1);
  });

  it('becomes ready when the service starts some seconds later, and then ends by close', async () => {
    let requests = 0;
    test.issuer.feed.handler = (_, response) => {
      if (++requests === 2) test.issuer.feed.handler = undefined;
      response.writeHead(503).end();
    };
    expect(await startApi({}, RESOLVING_TIMEOUT_MS)).toEqual({ code: 0, stderr: '' });
  });
});
