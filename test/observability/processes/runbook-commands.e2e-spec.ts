import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { createEmptyDatabase, type TestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { type MariadbServer, startMariadb } from '../../../scripts/mariadb.js';
import { MARIADB } from '../../../scripts/test-programs.js';
import { basic, bearer } from '../../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { manage } from '../../support/management-api.js';
import {
  environmentOf,
  PORTS,
  type ServiceProcess,
  startServiceProcess,
  TestProcess,
} from '../../support/processes.js';
import { blocksOf, RunbookFolder, SETTINGS } from '../../support/runbook-commands.js';
import { testRegistry } from '../../support/test-registry.js';
import { httpClientOf } from '../../support/test-service.js';
import { infoStatus, newCustomer, redeem, transferToken } from '../../support/transfers.js';

const OPERATOR = 'operator-token-of-the-tests-0123456789';
const CLIENT_ID = 'created-by-alice';

/** What each command of a section prints after the faults below. */
const PRINTED: Record<string, RegExp[]> = {
  'Requests fail': [/status="503"/, /^ *\d+ "cause":"[^"]*(ECONNREFUSED|database)/m, /"context":"Database"/],
  'Tokens are rejected': [
    /route="\/oauth2\/introspect".*status="401"/,
    /^ *\d+ "resource_server":"unknown-api"|"reason":"malformed"/m,
    /"event":"admin.authentication_failed"/,
  ],
  'A pod waits': [/the database is not usable yet/],
  'No pod responds': [/the database is not usable yet/],
  'Requests are slow': [/http_request_duration_seconds_sum\{surface="public"/, /cas_database_waiting \d/],
  'Codes are replayed': [/"event":"transfer_token.replayed"/],
  'A file is invalid': [/cas_file_invalid\{file="REGISTRY_FILE"\} 1$/m, /not applied; the previous content/],
  'A registry file is superseded': [/cas_registry_file_superseded 1$/m, /the registry file is superseded/],
  'Signing keys expire': [/cas_signing_keys\{state="signing"\} 1$/m],
  'The database is overloaded': [/cas_database_connections\{state="idle"\}/],
  'The registry is stale': [/cas_registry_age_seconds \d/, /the registry could not be read/],
  'Revocations are not published': [/cas_revocation_feed_lag_seconds \d/, /the revocation feed cannot be published/],
  'Many revocations are in force': [
    /cas_revocation_feed_entries \d/,
    /^ *\d+ "kind":"customer"/m,
    /^ *\d+ "actor":\{"kind":"customer"/m,
  ],
  'Limits are not shared': [/cas_rate_limit_store_up 0$/m, /REDIS_URL:/],
  'An audit sink fails': [/cas_audit_sink_failures_total 0$/m, /^$/], // no extension here
  'An entry of the registry has changed': [/"actor":\{"kind":"operator","id":"alice"\}.*"change":"created"/],
  'Log lines are lost': [/cas_log_lines_lost_total 0$/m, /^$/],
};

describe.runIf(MARIADB.find())('the runbook', () => {
  let server: MariadbServer;
  let database: TestDatabase;
  let folder: RunbookFolder;
  const services: ServiceProcess[] = [];
  let waiting: TestProcess;

  beforeAll(async () => {
    server = await startMariadb();
    database = await createEmptyDatabase();
    const url = await server.createDatabase('service');
    const environment = {
      ...environmentOf({ ...database, url }),
      ...{ NODE_ENV: 'production', AUTH_URL: 'https://auth.example', REDIS_URL: 'redis://127.0.0.1:1' },
      ADMIN_TOKENS: `alice:${OPERATOR}`,
      TRUST_PROXY: '1',
      MIGRATE_ON_START: 'true',
    };
    const registryFile = join(database.folder, 'registry.yaml');
    const olderFile = join(database.folder, 'older.yaml');
    writeFileSync(registryFile, stringify(testRegistry()));
    cpSync(registryFile, olderFile);
    const start = async (REGISTRY_FILE: string) => {
      const service = await startServiceProcess({ ...environment, REGISTRY_FILE });
      services.push(service);
      return service;
    };
    const service = await start(registryFile);
    writeFileSync(registryFile, `${readFileSync(registryFile, 'utf8')}\nrevision: 2\n`);
    await service.process.says(/REGISTRY_FILE: changed; the new content is in use/);
    await start(olderFile);
    await causeFaults(service, registryFile);
    waiting = TestProcess.start('main.js', [], { ...PORTS, ...environment, REGISTRY_FILE: registryFile });
    await waiting.says(/the database is not usable yet/);
    folder = new RunbookFolder(database.folder, { ...environment, CLIENT_ID });
  });
  afterAll(async () => {
    waiting?.signal('SIGKILL');
    for (const each of services) each.process.signal('SIGKILL');
    await Promise.all([waiting?.ended, ...services.map((each) => each.process.ended)]);
    await server?.stop();
    await database?.remove();
  });

  async function causeFaults(service: ServiceProcess, registryFile: string): Promise<void> {
    const client = httpClientOf(service.url);
    const { access_token } = await newCustomer(client);
    const code = await transferToken(client, access_token);
    await redeem(client, code);
    await redeem(client, code, {}, { 'x-forwarded-for': '203.0.113.5' }); // from another network: a replay
    await client.send('DELETE', TOKEN, bearer((await newCustomer(client)).access_token));
    await client.post('/v2/customer/end_sessions', {}, bearer((await newCustomer(client)).access_token));
    await infoStatus(client, 'malformed');
    await manage(service, 'POST', '/oauth2/introspect', basic('unknown-api', 'x'.repeat(32)), { token: access_token });
    await manage(service, 'GET', '/admin/clients', bearer('wrong'));
    const entry = { client_id: CLIENT_ID, name: 'C', client_type: 'native', redirect_uris: ['app.example:/callback'] };
    expect((await manage(service, 'POST', '/admin/clients', bearer(OPERATOR), entry)).status).toBe(201);
    writeFileSync(registryFile, 'revision: [');
    await service.process.says(/not applied; the previous content stays in use/);
    await server.shutDown();
    while ((await client.post(TOKEN, cookieBody())).status !== 503);
    await service.process.says(/"context":"Database"/);
    await service.process.says(/the registry could not be read/);
    await service.process.says(/the revocation feed cannot be published/);
  }

  /** The processes, and first the one whose metrics the commands of a section need. */
  function writeFiles(heading: string): void {
    const [first, superseded] = services.map(({ process, managementUrl }) => ({
      log: process.stdout + process.stderr,
      metricsUrl: `${managementUrl}/metrics`,
    }));
    if (!first || !superseded) throw new Error('no process was started');
    const [, port] = /port (\d+) for the cluster/.exec(waiting.stdout) ?? [];
    const third = { log: waiting.stdout + waiting.stderr, metricsUrl: `http://127.0.0.1:${port}/metrics` };
    folder.write([...(heading.includes('superseded') ? [superseded, first] : [first, superseded]), third]);
  }

  const cases = SETTINGS.flatMap((setting) => Object.keys(PRINTED).map((heading) => [heading, setting] as const));

  it.each(cases)(
    '%s: each command that reads the log or the metrics prints what the page says (%s)',
    async (heading, setting) => {
      writeFiles(heading);
      const commands = blocksOf(heading)
        .flatMap((block) => block.split('\n'))
        .filter((line) => line.startsWith('service_'));
      expect(commands).toHaveLength(PRINTED[heading]?.length ?? 0);
      for (const [index, command] of commands.entries())
        expect([command, await folder.run(setting, command)]).toEqual([
          command,
          expect.stringMatching(PRINTED[heading]?.[index] as RegExp),
        ]);
    },
  );

  it('lists every section with such commands', () => {
    const page = readFileSync('docs/operations.md', 'utf8').split('\n## Runbook\n')[1] ?? '';
    const headings = Array.from(page.matchAll(/^### (.*)$/gm), ([, heading = '']) => heading);
    const tested = [...Object.keys(PRINTED), "A customer's token is refused"];
    expect(headings.filter((heading) => !tested.includes(heading))).toEqual([]);
  });
});
