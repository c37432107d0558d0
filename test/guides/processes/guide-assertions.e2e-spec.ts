import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { bearer } from '../../support/authorization-headers.js';
import { API_ACCOUNT, accountToken, CLUSTER_SERVER, registryWithKeys } from '../../support/client-assertions.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { temporaryFolder } from '../../support/project-files.js';
import { hasPython, runPython, startPython } from '../../support/python.js';
import { TestIssuer } from '../../support/test-issuer.js';
import { ACME } from '../../support/test-registry.js';
import { request } from '../../support/test-service.js';
import { newCustomer } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';
import { startVerifierProgram, VERIFIER_PROGRAMS } from '../../support/verifier-programs.js';

type Start = (folder: string, environment: Record<string, string>) => ReturnType<typeof startPython>;
const EXAMPLES: { name: string; isPossible: boolean; start: Start }[] = [
  ...VERIFIER_PROGRAMS.map(({ language, isPossible, build }) => ({
    name: `the example API in ${language}`,
    isPossible,
    start: (folder: string, environment: Record<string, string>) => startVerifierProgram(build(folder), environment),
  })),
  {
    name: 'python/chat_api.py',
    isPossible: hasPython,
    start: (_, environment) => startPython('chat_api.py', { ...environment, PORT: '0' }),
  },
];

describe('the example APIs of the guide for resource servers, with the token of a platform', () => {
  const folder = temporaryFolder('assertions');
  const file = join(folder, 'token');
  let cluster: TestIssuer;
  let own: TestIssuer;
  const service = useService(async () => {
    [own, cluster] = await Promise.all([TestIssuer.start(), TestIssuer.start()]);
    return { registry: registryWithKeys(own, cluster) };
  });
  beforeAll(async () => writeFileSync(file, `${await accountToken(cluster, Date.now(), { sub: API_ACCOUNT })}\n`));
  afterAll(() => Promise.all([own?.stop(), cluster?.stop()]));

  for (const { name, isPossible, start } of EXAMPLES)
    it.runIf(isPossible)(`${name} follows the feed without a secret`, async ({ onTestFinished }) => {
      const api = await start(folder, {
        AUTH_URL: 'https://auth.example',
        JWKS_URL: `${service.url}/.well-known/jwks.json`,
        REVOCATIONS_URL: `${service.managementUrl}/oauth2/revocations`,
        RESOURCE_SERVER_ID: CLUSTER_SERVER,
        ASSERTION_FILE: file,
      });
      onTestFinished(() => api.process.signal('SIGKILL'));
      const { access_token: token } = await newCustomer(service);
      const until = (status: number) =>
        vi.waitFor(
          async () => {
            const chats = `${api.url}/organizations/${ACME}/chats`;
            expect((await request(chats, { headers: bearer(token) })).status).toBe(status);
          },
          { timeout: 60_000, interval: 200 },
        );
      await until(200);
      expect((await request(`${service.url}${TOKEN}`, { method: 'DELETE', headers: bearer(token) })).status).toBe(200);
      await until(401);
    });

  it.runIf(hasPython)('python/introspection.py asks about a token without a secret', async () => {
    const { access_token: token, entity_id } = await newCustomer(service);
    const environment = {
      INTROSPECTION_URL: `${service.managementUrl}/oauth2/introspect`,
      RESOURCE_SERVER_ID: CLUSTER_SERVER,
      ASSERTION_FILE: file,
    };
    const statements = `import os
os.environ.update(given['environment'])
from introspection import introspect
result = introspect(given['token'])`;
    expect(await runPython(statements, { token, environment })).toMatchObject({ sub: entity_id });
  });
});
