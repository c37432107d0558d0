import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findProgram } from '../../../scripts/programs.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { WITH_REFRESH } from '../../support/customer-refresh.js';
import { useDatabase } from '../../support/databases.js';
import { manage } from '../../support/management-api.js';
import { shellBlocksOf } from '../../support/page-blocks.js';
import {
  environmentOf,
  PRODUCTION,
  runCli,
  runScript,
  type ServiceProcess,
  startServiceProcess,
} from '../../support/processes.js';
import { moveOf } from '../../support/remember.js';
import { httpClientOf } from '../../support/test-service.js';
import { redeem } from '../../support/transfers.js';

const ADMIN_TOKEN = 'token-of-the-operator-of-the-commands';
const SEPARATOR = '--- next block ---';
const SECRET = /^[\w-]{43}$/;

/** The tenant that the commands of docs/operations.md create, and the user that they search. */
const SITE = { client_id: 'example-site' };
const SITE_ORIGIN = 'https://chat.example.com';
const AGENT = ['--email', 'backend@example.com', '--client-id', 'example-backend', '--scope', 'customers:own'];
const USER = { external_id: 'user-4711' };

/**
 * The token of a customer that the backend of the tenant created, and to which a browser and an app lead.
 *
 * @param environment of commands that use the database of the service
 */
async function tokenOfUser(
  service: ServiceProcess,
  environment: Record<string, string>,
  adminToken: string,
): Promise<string> {
  const changes = { grant_types: WITH_REFRESH, grants: { identity_token: { remember: ['browser', 'refresh_token'] } } };
  const changed = await manage(service, 'PATCH', '/admin/clients/example-site', bearer(adminToken), changes);
  expect(changed.status).toBe(200);
  const { stdout: agentToken } = await runCli(['agent-token', ...AGENT], environment);
  const client = httpClientOf(service.url);
  const { body } = await client.post(TOKEN, agentTokenBody({ ...SITE, ...USER }), bearer(agentToken.trim()));
  for (const remember of ['browser', 'refresh_token']) {
    const { code, verifier } = await moveOf(client, body.access_token, SITE);
    const proof = { ...SITE, code_verifier: verifier, remember };
    expect((await redeem(client, code, proof, { origin: SITE_ORIGIN })).status).toBe(200);
  }
  return body.access_token;
}

describe.runIf(findProgram(['curl']))('the commands of docs/operations.md, section Administration', () => {
  const database = useDatabase();
  let service: ServiceProcess;
  let environment: Record<string, string>;
  let outputs: string[];
  let ofTenants: string[];
  let ofOffboarding: string[];
  beforeAll(async () => {
    environment = { ...environmentOf(database), ...PRODUCTION };
    const operator = { MIGRATE_ON_START: 'true', ADMIN_TOKENS: `operator-of-the-test:all:${ADMIN_TOKEN}` };
    service = await startServiceProcess({ ...environment, ...operator });
    const offboarding = shellBlocksOf('docs/operations.md', '### Off-boarding a tenant');
    const all = shellBlocksOf('docs/operations.md', '## Administration');
    const blocks = all.filter((block) => !offboarding.includes(block));
    const [functions = ''] = blocks;
    const firstOfCustomers = blocks.findIndex((block) => block.startsWith('CUSTOMER='));
    outputs = await run(blocks.slice(0, firstOfCustomers), {});
    const [, organization = ''] = outputs;
    const ORGANIZATION = JSON.parse(organization).id;
    const [change = ''] = shellBlocksOf('docs/tenants.md', '## The admin API from a program');
    const lists = shellBlocksOf('docs/tenants.md', '## Lists and export');
    const stale = 'admin -X PATCH -H "If-Match: $ETAG" "$ENTRY" -d "{}" || true';
    ofTenants = (await run([functions, change, ...lists, stale], { ORGANIZATION })).slice(1);
    const variables = { ORGANIZATION, TOKEN: await tokenOfUser(service, environment, ADMIN_TOKEN) };
    outputs.push(...(await run([functions, ...blocks.slice(firstOfCustomers)], variables)).slice(1));
    ofOffboarding = (await run([functions, ...offboarding], { ORGANIZATION })).slice(1);
  }, 180_000);
  afterAll(() => service?.terminate());

  /** Runs blocks as one script. Returns the output of each block. */
  async function run(blocks: string[], variables: Record<string, string>): Promise<string[]> {
    const script = blocks
      .join(`\necho; echo '${SEPARATOR}'\n`)
      .replaceAll(/http:\/\/localhost:300[12]/g, service.managementUrl)
      .replaceAll('http://localhost:3000', service.url);
    const stdout = await runScript(script, { env: { ...process.env, ADMIN_TOKEN, ...variables } });
    return stdout.split(SEPARATOR).map((output) => output.trim());
  }

  it('create an organization, two clients, an agent, a first secret and a first token', () => {
    const [, organization = '', site = '', agent = '', backend = '', check = ''] = outputs;
    const { id } = JSON.parse(organization);
    expect(JSON.parse(site)).toMatchObject({ client_id: 'example-site', organization_id: id, has_secret: false });
    const [, entry = '', secret] = /^(.*\})([^}]*)$/s.exec(backend) ?? [];
    expect(JSON.parse(entry)).toMatchObject({ client_id: 'example-backend', has_secret: false });
    expect(secret).toMatch(SECRET);
    expect(JSON.parse(agent)).toMatchObject({ email: 'backend@example.com', organization_id: id });
    const listed = JSON.parse(check).clients.map(({ client_id, has_secret }: Record<string, unknown>) => [
      client_id,
      has_secret,
    ]);
    expect(listed).toEqual([
      ['example-backend', true],
      ['example-site', false],
    ]);
  });

  it('change an entry that nobody has changed since, and list the clients of a tenant (docs/tenants.md)', () => {
    const [changed = '', clients = '', rejected = ''] = ofTenants;
    expect(JSON.parse(changed).redirect_uris).toEqual(['https://chat.example.com/', 'https://new.example.com/']);
    expect(clients.split('\n')).toEqual(['example-backend', 'example-site']);
    expect(JSON.parse(rejected).error).toBe('precondition_failed');
  });

  it('create a resource server, which reads the revocation feed', () => {
    const [entry = '', complete] = outputs.slice(6);
    expect(JSON.parse(entry)).toMatchObject({ id: 'example-api', audiences: ['customer-api'], has_secret: true });
    expect(complete).toBe('true');
  });

  it('rotate the secret of a client, say until when the old one is valid, and end all old secrets', () => {
    const [secret = '', end = '', changed = ''] = outputs.slice(8);
    expect(secret).toMatch(SECRET);
    const remainingMs = Date.parse(end) - Date.now();
    expect(remainingMs > 3_500_000 && remainingMs <= 3_600_000).toBe(true);
    expect(JSON.parse(changed)).toMatchObject({ client_id: 'example-backend', has_secret: true });
    expect(JSON.parse(changed)).not.toHaveProperty('previous_secret_expires_at');
  });

  it('find a customer by its token and by its external id, with its browsers and apps', () => {
    const [byToken = '', byExternalId = '', listed = ''] = outputs.slice(11);
    const organization_id = JSON.parse(outputs[1] ?? '').id;
    expect(JSON.parse(byToken)).toMatchObject({
      organization_id,
      browser: false,
      browsers: [{ last_seen_day: expect.any(String) }],
      refresh_tokens: [{ client_id: 'example-site' }],
    });
    expect(JSON.parse(byExternalId)).toEqual(JSON.parse(byToken));
    expect(JSON.parse(listed).customers).toContainEqual(expect.objectContaining({ organization_id }));
  });

  it('end a browser and an app of a customer, end its sessions, export it, and erase it with its tokens', () => {
    const [browserEnded, familyEnded, sessionsEnded, exported = '', erased, afterwards] = outputs.slice(14);
    for (const output of [browserEnded, familyEnded, sessionsEnded, erased]) expect(output).toBe('{}');
    const { entity_id, tables } = JSON.parse(exported);
    expect(entity_id).toBe(JSON.parse(outputs[11] ?? '').entity_id);
    expect(tables).toMatchObject({ customer: [{ entity_id }], session: [] });
    expect(afterwards).toBe('404false');
    expect(outputs).toHaveLength(20);
  });

  it('suspend a tenant, request its off-boarding, cancel it, and show that it stays', () => {
    const [suspended = '', requested = '', cancelled = '', state, status] = ofOffboarding;
    expect(JSON.parse(suspended)).toMatchObject({ suspended: true });
    expect(JSON.parse(requested).offboarding).toMatchObject({ begins_at: expect.any(String) });
    expect(JSON.parse(cancelled)).toEqual({});
    expect([state, status]).toEqual(['undefined', '200']);
  });

  it('leave audit events with the name of the token, and no secret in the log', async () => {
    await service.terminate();
    const lines = service.process.stdout.trim().split('\n');
    const events = lines
      .map((line) => JSON.parse(line))
      .filter(({ stream, actor }) => stream === 'audit' && actor.kind === 'operator');
    const ofCustomer = ['browser.ended', 'token.revoked', 'sessions.ended', 'identity.exported', 'identity.erased'];
    expect(events.map(({ event }) => event)).toEqual([
      ...Array(10).fill('registry.changed'),
      ...ofCustomer,
      ...Array(3).fill('registry.changed'),
    ]);
    for (const { actor } of events) expect(actor).toEqual({ kind: 'operator', id: 'operator-of-the-test' });
    expect(service.process.stdout).not.toContain(ADMIN_TOKEN);
    expect(service.process.stdout).not.toContain(outputs[8]);
  });
});
