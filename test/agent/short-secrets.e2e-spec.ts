import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { RegistryFile } from '../../src/registry/file/registry-file.js';
import { useService } from '../support/use-service.js';

const SHORT = 'MARKED-secret-of-31-characters.';
const RULE = 'must be 32 to 256 characters';

const service = useService();
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
