import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const PACKAGE = dirname(import.meta.dirname);
const REGISTRY = join(PACKAGE, 'registry.yaml');
const folder = mkdtempSync(join(tmpdir(), 'lotto-'));
const env = {
  PATH: process.env.PATH,
  DATABASE_URL: `sqlite:${join(folder, 'lotto.sqlite')}`,
  DATA_DIR: folder,
  MIGRATE_ON_START: 'false',
  HOST: '127.0.0.1',
  PORT: '0',
  MANAGEMENT_PORT: '0',
  RATE_LIMIT: 'off',
};
const cli = (...parameters: string[]) =>
  execFileSync(process.execPath, ['dist/cli.js', ...parameters], { cwd: PACKAGE, env, encoding: 'utf8' });

afterAll(() => rmSync(folder, { recursive: true }));

/** Long enough for a machine with other work. */
const SLOW = { timeout: 120_000 };

describe("the operator's commands", SLOW, () => {
  it('migrate creates the tables of the service and of this package, once', () => {
    expect(() => cli('migrate', '--check')).toThrow();
    expect(cli('migrate')).toMatch(/^(migrated: \w+\n)+migrated: LottoTickets1795300000000\n$/);
    expect(cli('migrate', '--check')).toBe('up to date\n');
  });

  it('registry apply validates the settings of the grant', () => {
    expect(cli('registry', 'apply', REGISTRY)).toContain('acme-draw');
    expect(cli('registry', 'export')).toContain('winning_ending');
  });
});

describe('the service', SLOW, () => {
  const service = { stop: async (): Promise<unknown> => undefined, url: '' };
  beforeAll(async () => {
    const child = spawn(process.execPath, ['dist/main.js'], {
      cwd: PACKAGE,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    service.stop = async () => (child.kill('SIGINT') ? (await once(child, 'exit'))[0] : child.exitCode);
    let output = '';
    for await (const text of child.stdout.setEncoding('utf8')) {
      output += text;
      const port = /port (\d+) for callers/.exec(output)?.[1];
      if (!port) continue;
      service.url = `http://127.0.0.1:${port}/v2/customer/token`;
      break;
    }
  }, SLOW.timeout);
  afterAll(() => service.stop());

  async function draw(ticket: string): Promise<{ status: number; body: Record<string, unknown> }> {
    const organization_id = '390e44e6-f1e6-4368-86dd-b74514508c2e';
    const body = JSON.stringify({ grant_type: 'lotto', client_id: 'acme-draw', organization_id, ticket });
    const response = await fetch(service.url, { method: 'POST', body });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  it('issues a customer token for a winning ticket', async () => {
    const { status, body } = await draw('000017');
    expect({ status, body }).toMatchObject({ status: 200, body: { prize: 'a bicycle', token_type: 'Bearer' } });
    expect(body.entity_id).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('rejects a ticket that does not win', async () => {
    expect(await draw('000018')).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
  });

  it('issues one customer token for each ticket when several requests redeem it at once', async () => {
    for (let round = 0; round < 20; round++) {
      const ticket = `${10_000 + round}7`;
      const responses = await Promise.all(Array.from({ length: 10 }, () => draw(ticket)));
      expect(responses.filter(({ status }) => status === 200)).toHaveLength(1);
      expect(responses.filter(({ body }) => body.error === 'invalid_grant')).toHaveLength(9);
    }
  });
});
