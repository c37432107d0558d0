import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { emptyDatabaseOfTest, useDatabase } from '../../support/databases.js';
import { runCli } from '../../support/processes.js';
import { writeRegistry } from '../../support/test-registry.js';

describe('protocol §9.3: a command that uses the database alone', { timeout: 300_000 }, () => {
  const database = useDatabase();
  let environment: Record<string, string>;
  beforeAll(() => {
    // None of these values is usable, so a command that read one of them would fail.
    const unusable = { SIGNING_KEYS_FILE: '/MARKED', ADMIN_TOKENS: 'x' };
    const alsoUnusable = { AUTH_URL_FILE: '/MARKED', REGISTRY_FILE: '/MARKED', TRUSTED_AGENT_ISSUERS: 'MARKED' };
    const used = { NODE_ENV: 'production', DATABASE_URL: database.url, DATA_DIR: database.folder };
    environment = { ...unusable, ...alsoUnusable, ...used };
  });

  it('needs no key, secret or URL: migrate, registry apply, registry export and purge', async () => {
    const registry = writeRegistry(join(database.folder, 'registry.yaml'));
    for (const command of [['migrate'], ['registry', 'apply', registry], ['registry', 'export'], ['purge']]) {
      const { code, stdout, stderr } = await runCli(command, environment);
      expect({ command, code, stderr }).toMatchObject({ code: 0, stderr: expect.not.stringContaining('MARKED') });
      expect(stdout).not.toBe('');
    }
    expect(readdirSync(database.folder)).not.toContain('signing-keys.json');
  });

  it('does not include agent-token and token explain, which use the keys and AUTH_URL', async () => {
    const explained = await runCli(['agent-token', '--email', 'x', '--client-id', 'x'], environment);
    expect(explained).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('AUTH_URL_FILE') });
  });
});

describe('protocol §9.3: a command without the DATA_DIR of the service', { timeout: 300_000 }, () => {
  const commands = [
    ...['migrate --check', 'registry export', 'purge', 'revocation-feed restart'],
    'agent-token --email x --client-id x',
  ];

  it.each(commands)('names the embedded database that does not exist, and does not create it: %s', async (command) => {
    const DATA_DIR = join((await emptyDatabaseOfTest()).folder, 'another');
    const { code, stdout, stderr } = await runCli(command.split(' '), { DATA_DIR });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(`sqlite:${join(DATA_DIR, 'service.sqlite')} does not exist; set DATABASE_URL or DATA_DIR`);
    expect(existsSync(DATA_DIR)).toBe(false);
  });
});
