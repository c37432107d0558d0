import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../src/testing/test-database.js';
import { environmentOf, type ServiceProcess, startServiceProcess } from '../support/processes.js';

const ADMIN_TOKEN = 'token-of-the-operator-of-the-commands';
const SEPARATOR = '--- next block ---';
const SECRET = /^[\w-]{43}$/;

const hasCurl = (() => {
  try {
    return execFileSync('curl', ['--version']).length > 0;
  } catch {
    return false;
  }
})();

/** The shell blocks of the section, without the indentation of a list. */
function blocksOf(page: string, section: string): string[] {
  const [, text = ''] = new RegExp(`^## ${section}\n(.*?)^## `, 'ms').exec(readFileSync(page, 'utf8')) ?? [];
  const blocks = text.matchAll(/^( *)```sh\n(.*?)^\1```$/gms);
  return Array.from(blocks, ([, indentation = '', lines = '']) =>
    lines.replaceAll(new RegExp(`^${indentation}`, 'gm'), ''),
  );
}

describe.runIf(hasCurl)('the commands of docs/operations.md, section Administration', () => {
  let database: TestDatabase;
  let service: ServiceProcess;
  let outputs: string[];
  beforeAll(async () => {
    database = await createTestDatabase();
    service = await startServiceProcess({
      ...environmentOf(database),
      NODE_ENV: 'production',
      AUTH_URL: 'https://auth.example',
      MIGRATE_ON_START: 'true',
      ADMIN_TOKENS: `operator-of-the-test:${ADMIN_TOKEN}`,
    });
    const script = blocksOf('docs/operations.md', 'Administration')
      .join(`\necho; echo '${SEPARATOR}'\n`)
      .replaceAll('http://localhost:3001', service.managementUrl)
      .replaceAll('http://localhost:3000', service.url);
    const env = { ...process.env, ADMIN_TOKEN };
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { env });
    outputs = stdout.split(SEPARATOR).map((output) => output.trim());
  }, 180_000);
  afterAll(async () => {
    await service?.terminate();
    await database?.remove();
  });

  it('create an organization, two clients, a first secret, an agent and a first token', () => {
    const [, organization = '', site = '', backend = '', agent = '', check = '', found = ''] = outputs;
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
    expect(JSON.parse(found)).toEqual({ organizations: [JSON.parse(organization)] });
  });

  it('rotate the secret of a client, say until when the old one is valid, and end all old secrets', () => {
    const [secret = '', end = '', changed = ''] = outputs.slice(7);
    expect(secret).toMatch(SECRET);
    const remainingMs = Date.parse(end) - Date.now();
    expect(remainingMs > 3_500_000 && remainingMs <= 3_600_000).toBe(true);
    expect(JSON.parse(changed)).toMatchObject({ client_id: 'example-backend', has_secret: true });
    expect(JSON.parse(changed)).not.toHaveProperty('previous_secret_expires_at');
  });

  it('find a customer by its token, and erase it with its tokens', () => {
    const [customer = '', erased = '', afterwards = ''] = outputs.slice(10);
    const organization = JSON.parse(outputs[1] ?? '').id;
    expect(JSON.parse(customer)).toMatchObject({ organization_id: organization, browser: true });
    expect(JSON.parse(erased)).toEqual({});
    expect(afterwards).toBe('404false');
    expect(outputs).toHaveLength(13);
  });

  it('leave audit events with the name of the token, and no secret in the log', async () => {
    await service.terminate();
    const lines = service.process.stdout.trim().split('\n');
    const events = lines
      .map((line) => JSON.parse(line))
      .filter(({ stream, actor }) => stream === 'audit' && actor.kind === 'operator');
    expect(events.map(({ event }) => event)).toEqual([...Array(7).fill('registry.changed'), 'identity.erased']);
    for (const { actor } of events) expect(actor).toEqual({ kind: 'operator', id: 'operator-of-the-test' });
    expect(service.process.stdout).not.toContain(ADMIN_TOKEN);
    expect(service.process.stdout).not.toContain(outputs[7]);
  });
});
