import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { OutputCapture } from '../../packages/conformance-kit/src/output-capture.js';
import { Agent } from '../../src/registry/agent.entity.js';
import { hashPassword } from '../../src/registry/agent-password.js';
import { RegistryFileError } from '../../src/registry/file/read-registry-file.js';
import { RegistryFile } from '../../src/registry/file/registry-file.js';
import { AgentBrowser } from '../support/authorization-page.js';
import { expectInvalidRequest } from '../support/expect-error.js';
import { manage } from '../support/management-api.js';
import { ACME, testRegistry, writeRegistry } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';

const ADMIN_TOKEN = 'operator-token-of-the-password-test';
const RULE = 'must be 8 to 1024 characters';
/** Seven characters: one less than required. */
const SHORT = 'MARK-7!';
const OTHER_SHORT = 'MARK-8!';
const EMAIL = 'short@acme.example';

const agentWith = (password: string) => ({ email: EMAIL, name: 'Short', organization_id: ACME, password });

let service: TestService;
const output = new OutputCapture();
beforeAll(async () => {
  service = await startTestService({ environment: { ADMIN_TOKEN }, log: output.log });
});
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
  const stored = () => service.application.get(DataSource).getRepository(Agent);
  const warnings = () => output.lines.filter((line) => line.includes('too short'));

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

  describe('that release 1 stored', () => {
    beforeEach(async () => {
      expect(await apply(agentWith('a password of enough length'))).toEqual([]);
      await stored().update({ email: EMAIL }, { passwordHash: await hashPassword(SHORT) });
      output.lines.length = 0;
    });

    it('is accepted from the registry file with one warning, if it has not changed', async () => {
      const before = await stored().findOneByOrFail({ email: EMAIL });
      expect(await apply(agentWith(SHORT))).toEqual([]);
      expect((await stored().findOneByOrFail({ email: EMAIL })).passwordHash).toBe(before.passwordHash);
      expect(warnings()).toEqual([expect.stringContaining('agents[2].password: too short')]);
      expect(output.text).not.toContain('MARK');
      const { status } = await new AgentBrowser(service).signIn({ email: EMAIL, password: SHORT });
      expect(status).toBe(303);
    });

    it('is accepted together with other changes of the entry', async () => {
      expect(await apply({ ...agentWith(SHORT), email: EMAIL.toUpperCase(), name: 'Renamed' })).toEqual([]);
      expect(await stored().findOneByOrFail({ email: EMAIL })).toMatchObject({ name: 'Renamed' });
    });

    it('is rejected if it was replaced by another short one', async () => {
      expect(await apply(agentWith(OTHER_SHORT))).toEqual([`agents[2].password: ${RULE}`]);
      expect(warnings()).toEqual([]);
    });

    it('is rejected for another agent', async () => {
      expect(await apply({ ...agentWith(SHORT), email: 'another@acme.example' })).toEqual([
        `agents[2].password: ${RULE}`,
      ]);
    });

    it('does not change the other violations of the file', async () => {
      const violations = await apply(agentWith(SHORT), {
        ...agentWith(OTHER_SHORT),
        email: 'b@acme.example',
        surprise: 1,
      });
      expect(violations.sort()).toEqual([`agents[3].password: ${RULE}`, 'agents[3].surprise: unknown field']);
    });

    it('is accepted at the start of a process', async () => {
      const registry = testRegistry();
      registry.agents.push(agentWith(SHORT));
      const other = await startTestService({ registry, database: service.database });
      await other.stop();
    });

    it('may be replaced by one of 8 characters, and is rejected from then on', async () => {
      expect(await apply(agentWith('12345678'))).toEqual([]);
      expect(await apply(agentWith(SHORT))).toEqual([`agents[2].password: ${RULE}`]);
    });
  });
});
