import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type MariadbServer, startMariadb } from '../../../scripts/mariadb.js';
import { findProgram, MARIADB } from '../../../scripts/programs.js';
import { claimsOf } from '../../support/agent-tokens.js';
import { basic, bearer } from '../../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { useDatabase } from '../../support/databases.js';
import { manage } from '../../support/management-api.js';
import { shellBlocksOf } from '../../support/page-blocks.js';
import {
  environmentOf,
  PORTS,
  PRODUCTION,
  runProgram,
  type ServiceProcess,
  startServiceProcess,
  TestProcess,
} from '../../support/processes.js';
import { PROJECT, read } from '../../support/project-files.js';
import { testRegistry, writeRegistry } from '../../support/test-registry.js';
import { httpClientOf } from '../../support/test-service.js';
import { INFO, infoStatus, newCustomer, redeem, transferToken } from '../../support/transfers.js';

const PAGE = 'docs/operations.md';
const OPERATOR = 'operator-token-of-the-tests-0123456789';

/** The runbook runs in Kubernetes and without it. */
type Setting = 'kubernetes' | 'plain';
const SETTINGS: Setting[] = ['kubernetes', 'plain'];

/** A process whose log and metrics the runbook reads. */
interface RunbookProcess {
  log: string;
  metricsUrl: string;
}

/** The functions that the runbook defines for each setting: its first two blocks. */
const FUNCTIONS = shellBlocksOf(PAGE, '## Runbook').slice(0, 2);

const blocksOf = (heading: string) => shellBlocksOf(PAGE, `### ${heading}`);

/** Does what the runbook asks of kubectl, with the files and ports of local processes. */
const KUBECTL = `#!/usr/bin/env bash
shift 2 # -n NAMESPACE
verb=$1; shift
case "$verb" in
  logs) for pod in pods/*; do sed "s|^|[pod/\${pod##*/}/service] |" "$pod/log"; done ;;
  get) for pod in pods/*; do echo "pod/\${pod##*/}"; done ;;
  exec)
    [ "$1" = -i ] && shift
    pod=\${1##*/}; shift 2 # POD --
    if [ "$2" = -e ]; then node -e "\${3//http:\\/\\/localhost:3003\\/metrics/$(cat "pods/$pod/metrics-url")}"; else "$@"; fi ;;
esac
`;

/** A folder in which the commands of the runbook run. */
class RunbookFolder {
  constructor(
    private readonly cwd: string,
    private readonly environment: Record<string, string>,
  ) {
    const bin = join(cwd, 'bin');
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, 'kubectl'), KUBECTL);
    chmodSync(join(bin, 'kubectl'), 0o755);
  }

  /** Writes the logs of the processes. Without Kubernetes, the metrics are those of the first one. */
  write(processes: RunbookProcess[]): void {
    for (const [index, { log, metricsUrl }] of processes.entries()) {
      const pod = join(this.cwd, `pods/customer-authorization-${index}`);
      mkdirSync(pod, { recursive: true });
      writeFileSync(join(pod, 'log'), log);
      writeFileSync(join(pod, 'metrics-url'), metricsUrl);
    }
    writeFileSync(join(this.cwd, 'service.log'), processes.map(({ log }) => log).join(''));
    writeFileSync(join(this.cwd, 'metrics-url'), processes[0]?.metricsUrl ?? '');
  }

  /** Runs commands as a person does. Returns everything that they print. */
  async run(setting: Setting, commands: string): Promise<string> {
    const metricsUrl = readFileSync(join(this.cwd, 'metrics-url'), 'utf8');
    const functions = FUNCTIONS[SETTINGS.indexOf(setting)]?.replace('http://localhost:3001/metrics', metricsUrl);
    const env = { ...this.environment, PATH: `${join(this.cwd, 'bin')}:${process.env.PATH}` };
    const parameters = ['--norc', '-uc', `${functions}\n${commands}`];
    const { stdout, stderr } = await runProgram('bash', parameters, { cwd: this.cwd, env });
    return stdout + stderr;
  }
}

const SECRET = 'resource-server-secret-of-the-test';

function registryWithApi() {
  const registry = testRegistry();
  registry.resource_servers.push({ id: 'chat-api', secret: SECRET, audiences: ['customer-api'] });
  return registry;
}

describe.runIf(findProgram(['curl']))('the runbook: a customer’s token is refused', () => {
  const database = useDatabase();
  let service: ServiceProcess;
  let folder: RunbookFolder;
  let ended: { access_token: string; entity_id: string };

  beforeAll(async () => {
    const cwd = database.folder;
    const environment = { ...environmentOf(database), ...PRODUCTION };
    service = await startServiceProcess({
      ...environment,
      MIGRATE_ON_START: 'true',
      ADMIN_TOKENS: `alice:support:${OPERATOR}`,
      REGISTRY_FILE: writeRegistry(join(cwd, 'registry.yaml'), registryWithApi()),
    });
    const client = httpClientOf(service.url);
    ended = await newCustomer(client);
    await client.post(TOKEN, cookieBody());
    await client.send('DELETE', TOKEN, bearer(ended.access_token));
    const requestId = (await client.send('GET', INFO, bearer(ended.access_token))).body.request_id;
    await manage(service, 'POST', '/oauth2/introspect', basic('chat-api', SECRET), { token: ended.access_token });
    await service.process.says(/"route":"\/oauth2\/introspect"/);
    // the files that the section names
    symlinkSync(join(PROJECT, 'dist'), join(cwd, 'dist'));
    writeFileSync(join(cwd, 'token.txt'), `${ended.access_token}\n`, { mode: 0o600 });
    writeFileSync(join(cwd, 'operator.header'), `Authorization: Bearer ${OPERATOR}\n`, { mode: 0o600 });
    folder = new RunbookFolder(cwd, { ...environment, REQUEST_ID: requestId, ENTITY_ID: ended.entity_id });
    folder.write([{ log: service.process.stdout, metricsUrl: `${service.managementUrl}/metrics` }]);
  });
  afterAll(() => service?.terminate());

  const linesOf = (output: string) =>
    output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line.replace(/^\[\S+\] /, '')));

  it.each(SETTINGS)('explains the token, and finds its refusals and the event of its end (%s)', async (setting) => {
    const outputs: string[] = [];
    for (const commands of blocksOf("A customer's token is refused"))
      outputs.push(await folder.run(setting, commands.replaceAll('http://localhost:3001', service.managementUrl)));
    const [explained = '', introspected = '', refusal = '', refusals = '', events = '', ...others] = outputs;
    expect(others).toEqual([]);
    const claims = { sub: ended.entity_id };
    const token = { kind: 'customer access token', valid: false, reason: 'revoked', claims };
    expect(JSON.parse(explained)).toMatchObject(token);
    expect(JSON.parse(introspected)).toEqual({ active: false, inactive_reason: 'revoked' });
    expect(linesOf(refusal)).toMatchObject([{ route: INFO, status: 401, reason: 'revoked', sub: ended.entity_id }]);
    expect(linesOf(refusals)).toMatchObject([
      { route: INFO, reason: 'revoked' },
      { route: '/oauth2/introspect', reason: 'revoked', resource_server: 'chat-api' },
    ]);
    const actor = { kind: 'customer', id: ended.entity_id };
    const subject = { id: claimsOf(ended.access_token).jti };
    expect(linesOf(events).at(-1)).toMatchObject({ event: 'token.revoked', actor, subject });
  });
});

const CLIENT_ID = 'created-by-alice';

/** What each command of a section prints after the faults below. */
const PRINTED: Record<string, RegExp[]> = {
  'Requests fail': [/status="503"/, /^ *\d+ "cause":"[^"]*(ECONNREFUSED|database)/m, /"context":"Database"/],
  'Tokens are rejected': [
    /route="\/oauth2\/introspect".*status="401"/,
    /^ *\d+ "resource_server":"unknown-api"|"reason":"malformed"/m,
    /"event":"admin.authentication_failed"/,
    /cas_introspections_total\{active="false",reason="malformed"\} 1$/m,
  ],
  'A pod waits': [/the process cannot serve yet/],
  'No pod responds': [/the process cannot serve yet/],
  'A process does not respond': [],
  'A pod cannot use the database': [
    /cas_database_statements_total\{outcome="unavailable"\} [1-9]/,
    /"context":"Database".*connect ECONNREFUSED/,
  ],
  'A clock is wrong': [/cas_clock_offset_seconds -?\d/],
  'Pods differ': [/cas_configuration_info\{issuer="https:\/\/auth\.example",region="\w+",keys="\w{12}"/],
  'Requests are slow': [/http_request_duration_seconds_sum\{surface="public"/, /cas_database_waiting \d/],
  'Codes are replayed': [/"event":"transfer_token.replayed"/],
  'A file is invalid': [/cas_file_invalid\{file="ADMIN_TOKENS_FILE"\} 1$/m, /ADMIN_TOKENS_FILE: not applied; /],
  'Signing keys expire': [/cas_signing_keys\{state="signing"\} 1$/m],
  'The database is overloaded': [/cas_database_connections\{state="idle"\}/],
  'The registry is stale': [/cas_registry_age_seconds \d/, /the registry could not be read/],
  'The registry is not applied': [],
  'An off-boarding does not end': [/cas_offboarding_age_seconds 0$/m, /^$/], // none is due here
  'Revocations are not published': [/cas_revocation_feed_lag_seconds \d/, /the revocation feed cannot be published/],
  'Many revocations are in force': [
    /cas_revocation_feed_entries \d/,
    /^ *\d+ "kind":"customer"/m,
    /^ *\d+ "actor":\{"kind":"customer"/m,
  ],
  'An entry of the registry has changed': [/"actor":\{"kind":"operator","id":"alice"\}.*"change":"created"/],
  'Log lines are lost': [/cas_log_lines_lost_total 0$/m, /^$/],
};

describe.runIf(MARIADB.find())('the runbook after faults', () => {
  const database = useDatabase();
  let server: MariadbServer;
  let folder: RunbookFolder;
  const services: ServiceProcess[] = [];
  let waiting: TestProcess;

  beforeAll(async () => {
    server = await startMariadb();
    const url = await server.createDatabase('service');
    const environment = {
      ...environmentOf({ ...database, url }),
      ...PRODUCTION,
      ADMIN_TOKENS_FILE: join(database.folder, 'admin-tokens'),
      REGISTRY_FILE: writeRegistry(join(database.folder, 'registry.yaml'), registryWithApi()),
      TRUST_PROXY: '1',
      MIGRATE_ON_START: 'true',
    };
    writeFileSync(environment.ADMIN_TOKENS_FILE, `alice:registry:${OPERATOR}`);
    const start = async () => {
      const service = await startServiceProcess(environment);
      services.push(service);
      return service;
    };
    const service = await start();
    await start();
    await causeFaults(service, environment.ADMIN_TOKENS_FILE);
    // a start with the invalid file would end
    const { ADMIN_TOKENS_FILE: _, ...valid } = environment;
    waiting = TestProcess.start('main.js', [], { ...PORTS, ...valid });
    await waiting.says(/the process cannot serve yet/);
    folder = new RunbookFolder(database.folder, { ...environment, CLIENT_ID });
  });
  afterAll(async () => {
    waiting?.signal('SIGKILL');
    for (const each of services) each.process.signal('SIGKILL');
    await Promise.all([waiting?.ended, ...services.map((each) => each.process.ended)]);
    await server?.stop();
  });

  async function causeFaults(service: ServiceProcess, tokensFile: string): Promise<void> {
    const client = httpClientOf(service.url);
    const { access_token } = await newCustomer(client);
    const code = await transferToken(client, access_token);
    await redeem(client, code);
    await redeem(client, code, {}, { 'x-forwarded-for': '203.0.113.5' }); // from another network: a replay
    await client.send('DELETE', TOKEN, bearer((await newCustomer(client)).access_token));
    await client.post('/v2/customer/end_sessions', {}, bearer((await newCustomer(client)).access_token));
    await infoStatus(client, 'malformed');
    await manage(service, 'POST', '/oauth2/introspect', basic('unknown-api', 'x'.repeat(32)), { token: access_token });
    await manage(service, 'POST', '/oauth2/introspect', basic('chat-api', SECRET), { token: 'malformed' });
    await manage(service, 'GET', '/admin/clients', bearer('wrong'));
    const entry = { client_id: CLIENT_ID, name: 'C', client_type: 'native', redirect_uris: ['app.example:/callback'] };
    expect((await manage(service, 'POST', '/admin/clients', bearer(OPERATOR), entry)).status).toBe(201);
    writeFileSync(tokensFile, 'revision: [');
    await service.process.says(/ADMIN_TOKENS_FILE: not applied/);
    await server.shutDown();
    while ((await client.post(TOKEN, cookieBody())).status !== 503);
    await service.process.says(/"context":"Database"/);
    await service.process.says(/the registry could not be read/);
    await service.process.says(/the revocation feed cannot be published/);
  }

  /** The processes, and first the one whose metrics the commands of a section need. */
  function writeFiles(): void {
    const [first, second] = services.map(({ process, managementUrl }) => ({
      log: process.stdout + process.stderr,
      metricsUrl: `${managementUrl}/metrics`,
    }));
    if (!first || !second) throw new Error('no process was started');
    const [, port] = /port (\d+) for the cluster/.exec(waiting.stdout) ?? [];
    const third = { log: waiting.stdout + waiting.stderr, metricsUrl: `http://127.0.0.1:${port}/metrics` };
    folder.write([first, second, third]);
  }

  const cases = SETTINGS.flatMap((setting) => Object.keys(PRINTED).map((heading) => [heading, setting] as const));

  it.each(cases)(
    '%s: each command that reads the log or the metrics prints what the page says (%s)',
    async (heading, setting) => {
      writeFiles();
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
    const page = read(PAGE).split('\n## Runbook\n')[1] ?? '';
    const headings = Array.from(page.matchAll(/^### (.*)$/gm), ([, heading = '']) => heading);
    const tested = [...Object.keys(PRINTED), "A customer's token is refused"];
    expect(headings.filter((heading) => !tested.includes(heading))).toEqual([]);
  });
});
