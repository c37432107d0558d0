import { execFileSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEmptyDatabase, type TestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { claimsOf } from '../../support/agent-tokens.js';
import { basic, bearer } from '../../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { manage } from '../../support/management-api.js';
import { environmentOf, type ServiceProcess, startServiceProcess } from '../../support/processes.js';
import { blocksOf, RunbookFolder, SETTINGS } from '../../support/runbook-commands.js';
import { testRegistry, writeRegistry } from '../../support/test-registry.js';
import { httpClientOf } from '../../support/test-service.js';
import { INFO, newCustomer } from '../../support/transfers.js';

const PROJECT = join(import.meta.dirname, '../../..');
const ADMIN_TOKEN = 'operator-token-of-the-tests-0123456789';
const SECRET = 'resource-server-secret-of-the-test';

const hasPrograms = ['bash', 'curl', 'grep', 'sed', 'tr'].every((program) => {
  try {
    return execFileSync('which', [program]).length > 0;
  } catch {
    return false;
  }
});

describe.runIf(hasPrograms).each(SETTINGS)('the runbook: a customer’s token is refused (%s)', (setting) => {
  let database: TestDatabase;
  let service: ServiceProcess;
  let environment: Record<string, string>;
  let ended: { access_token: string; entity_id: string };
  let requestId: string;
  let outputs: string[];

  beforeAll(async () => {
    database = await createEmptyDatabase();
    const registry = testRegistry();
    registry.resource_servers.push({ id: 'chat-api', secret: SECRET, audiences: ['customer-api'] });
    environment = { ...environmentOf(database), NODE_ENV: 'production', AUTH_URL: 'https://auth.example' };
    service = await startServiceProcess({
      ...environment,
      MIGRATE_ON_START: 'true',
      ADMIN_TOKEN,
      REGISTRY_FILE: writeRegistry(join(database.folder, 'registry.yaml'), registry),
    });
    const client = httpClientOf(service.url);
    ended = await newCustomer(client);
    await client.post(TOKEN, cookieBody());
    await client.send('DELETE', TOKEN, bearer(ended.access_token));
    requestId = (await client.send('GET', INFO, bearer(ended.access_token))).body.request_id;
    await manage(service, 'POST', '/oauth2/introspect', basic('chat-api', SECRET), { token: ended.access_token });
    await service.process.says(/"route":"\/oauth2\/introspect"/);
    outputs = await runAll();
  }, 300_000); // it starts the service and two commands, each in a process
  afterAll(async () => {
    await service?.terminate();
    await database?.remove();
  });

  /** Runs the commands of the section in a folder with the files that the section names. */
  async function runAll(): Promise<string[]> {
    const cwd = database.folder;
    symlinkSync(join(PROJECT, 'dist'), join(cwd, 'dist'));
    writeFileSync(join(cwd, 'token.txt'), `${ended.access_token}\n`, { mode: 0o600 });
    writeFileSync(join(cwd, 'operator.header'), `Authorization: Bearer ${ADMIN_TOKEN}\n`, { mode: 0o600 });
    const folder = new RunbookFolder(cwd, { ...environment, REQUEST_ID: requestId, ENTITY_ID: ended.entity_id });
    folder.write([{ log: service.process.stdout, metricsUrl: `${service.managementUrl}/metrics` }]);
    const printed: string[] = [];
    for (const commands of blocksOf("A customer's token is refused"))
      printed.push(await folder.run(setting, commands.replaceAll('http://localhost:3001', service.managementUrl)));
    return printed;
  }

  const linesOf = (output: string | undefined) =>
    (output ?? '')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line.replace(/^\[\S+\] /, '')));

  it('explains the token', () => {
    expect(outputs).toHaveLength(5);
    expect(outputs[0]).toMatch(/^kind: customer access token\nvalid here: no\nreason: revoked\n/);
    expect(outputs[0]).toContain(`sub: ${ended.entity_id}\n`);
  });

  it('gets the reason from a running process', () => {
    expect(JSON.parse(outputs[1] ?? '')).toEqual({ active: false, inactive_reason: 'revoked' });
  });

  it('finds the refused request by its id', () => {
    expect(linesOf(outputs[2])).toMatchObject([{ route: INFO, status: 401, reason: 'revoked', sub: ended.entity_id }]);
  });

  it('finds every refused request of the customer, with the resource server that asked', () => {
    expect(linesOf(outputs[3])).toMatchObject([
      { route: INFO, reason: 'revoked' },
      { route: '/oauth2/introspect', reason: 'revoked', resource_server: 'chat-api' },
    ]);
  });

  it('finds the audit event of the end of the token, with its actor', () => {
    const { jti } = claimsOf(ended.access_token);
    const actor = { kind: 'customer', id: ended.entity_id };
    expect(linesOf(outputs[4]).at(-1)).toMatchObject({ event: 'token.revoked', actor, subject: { id: jti } });
  });
});
