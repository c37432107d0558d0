import { createHash, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { OutputCapture } from '../../packages/conformance-kit/src/output-capture.js';
import { ClientApplication } from '../../src/registry/client-application.entity.js';
import { RegistryFile } from '../../src/registry/file/registry-file.js';
import { ResourceServer } from '../../src/registry/resource-server.entity.js';
import { askToken } from '../support/agent-tokens.js';
import { ACME } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';

const SHORT = 'MARKED-secret-of-31-characters.';
const LONG = `${SHORT}.`;
const RULE = 'must be 32 to 256 characters';
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

let service: TestService;
let output: OutputCapture;
beforeAll(async () => {
  output = new OutputCapture();
  service = await startTestService({ log: output.log });
});
afterAll(async () => {
  await service?.stop();
});

const client = (more: object = {}) => ({ client_id: 'short', name: 'Short', client_type: 'server', ...more });
const server = (more: object = {}) => ({ id: 'short-api', audiences: ['customer-api'], ...more });
const file = (text: string, name = `${randomUUID()}.yaml`) => {
  const path = join(service.database.folder, name);
  writeFileSync(path, text);
  return path;
};
const apply = (content: object) =>
  service.application.get(RegistryFile, { strict: false }).apply(file(stringify(content)), { force: true });
const violationsOf = async (content: object): Promise<string[]> => {
  const error = await apply(content).then(
    () => undefined,
    (thrown) => thrown,
  );
  expect(`${error?.stack}`).not.toContain('MARKED');
  return error?.violations;
};

it('the registry file cannot set a client or resource server secret of less than 32 characters', async () => {
  file(`${SHORT}\n`, 'short.txt');
  const [clientViolation, serverViolation] = [
    `clients[0].client_secret: ${RULE}`,
    `resource_servers[0].secret: ${RULE}`,
  ];
  expect(await violationsOf({ clients: [client({ client_secret: SHORT })] })).toEqual([clientViolation]);
  expect(await violationsOf({ clients: [client({ client_secret_file: 'short.txt' })] })).toEqual([clientViolation]);
  expect(await violationsOf({ resource_servers: [server({ secret: SHORT })] })).toEqual([serverViolation]);
  expect(await violationsOf({ resource_servers: [server({ secret_file: 'short.txt' })] })).toEqual([serverViolation]);
  const tooLong = 'x'.repeat(257);
  expect(await violationsOf({ clients: [client({ client_secret: tooLong })] })).toEqual([clientViolation]);
  expect(await violationsOf({ resource_servers: [server({ secret: tooLong })] })).toEqual([serverViolation]);
});

it('a short secret that release 1 stored is accepted with a warning while it is unchanged', async () => {
  const clients = [client({ client_id: 'other', client_secret: LONG }), client({ client_secret: LONG })];
  await apply({ organizations: [{ id: ACME, name: 'Acme' }], clients, resource_servers: [server({ secret: LONG })] });
  const dataSource = service.application.get(DataSource);
  const secretHash = sha256(SHORT);
  await dataSource.getRepository(ClientApplication).update({ clientId: 'short' }, { secretHash });
  await dataSource.getRepository(ResourceServer).update({ id: 'short-api' }, { secretHash });
  await dataSource.query('UPDATE registry_revision SET revision = revision + 1');

  output.lines.length = 0;
  const unchanged = [clients[0] as object, client({ client_secret: SHORT })];
  await apply({ clients: unchanged, resource_servers: [server({ secret: SHORT })] });
  const warnings = output.lines.filter((line) => line.includes('shorter than 32 characters'));
  expect(warnings).toEqual([expect.stringContaining('clients[1].client_secret, resource_servers[0].secret: shorter')]);
  expect(output.text).not.toContain('MARKED');
  const request = { client_id: 'short', client_secret: SHORT, grant_type: 'refresh_token', refresh_token: 'unknown' };
  expect((await askToken(service, request)).status).toBe(400);

  const changed = [clients[0] as object, client({ client_secret: `${SHORT.slice(1)}` })];
  expect(await violationsOf({ clients: changed })).toEqual([`clients[1].client_secret: ${RULE}`]);
  const moved = [client({ client_id: 'other', client_secret: SHORT })];
  expect(await violationsOf({ clients: moved })).toEqual([`clients[0].client_secret: ${RULE}`]);
  output.lines.length = 0;
  await apply({ clients, resource_servers: [server({ secret: LONG })] });
  expect(output.lines.filter((line) => line.includes('shorter than'))).toEqual([]);
});
