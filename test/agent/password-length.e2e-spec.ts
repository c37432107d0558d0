import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Agent } from '../../src/registry/agent.entity.js';
import { RegistryFile, RegistryFileError } from '../../src/registry/file/registry-file.js';
import { expectInvalidRequest } from '../support/expect-error.js';
import { manage } from '../support/management-api.js';
import { ACME, testRegistry, writeRegistry } from '../support/test-registry.js';
import { ADMIN_TOKEN, useService } from '../support/use-service.js';

const RULE = 'must be 8 to 1024 characters';
/** Seven characters: one less than required. */
const SHORT = 'MARK-7!';
const EMAIL = 'short@acme.example';

const agentWith = (password: string) => ({ email: EMAIL, name: 'Short', organization_id: ACME, password });

const service = useService();
afterAll(async () => {
  await service?.stop();
});

async function apply(...agents: object[]): Promise<string[]> {
  const { agents: others, ...registry } = testRegistry();
  const path = writeRegistry(join(service.database.folder, 'passwords.yaml'), {
    ...registry,
    agents: [...others, ...agents],
  });
  try {
    await service.application.get(RegistryFile).apply(path, { force: true });
    return [];
  } catch (error) {
    if (error instanceof RegistryFileError) return error.violations;
    throw error;
  }
}

describe('an agent’s password of less than 8 characters', () => {
  const stored = () => service.rowsOf(Agent);

  it.each(['1234567', 'x', '😀😀😀😀😀😀😀', SHORT])(
    'is rejected in a registry file with a new agent: %j',
    async (password) => {
      expect(await apply(agentWith(password))).toEqual([`agents[2].password: ${RULE}`]);
      expect(await stored().countBy({ email: EMAIL })).toBe(0);
    },
  );

  it('is rejected by the admin API, in a new agent and in a change', async () => {
    const admin = (method: string, path: string, body: object) =>
      manage(service, method, `/admin/${path}`, { authorization: `Bearer ${ADMIN_TOKEN}` }, body);
    expectInvalidRequest(await admin('POST', 'agents', agentWith(SHORT)), `password: ${RULE}`);
    const created = await admin('POST', 'agents', { ...agentWith('12345678'), email: 'other@acme.example' });
    expect(created.status).toBe(201);
    const rejected = await admin('PATCH', `agents/${created.body.id}`, { password: SHORT });
    expectInvalidRequest(rejected, `password: ${RULE}`);
    expect((await admin('PATCH', `agents/${created.body.id}`, { password: '😀😀😀😀😀😀😀😀' })).status).toBe(200);
    expect((await admin('DELETE', `agents/${created.body.id}`, {})).status).toBe(200);
  });
});
