import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TOKEN } from '../../support/cookie-grant.js';
import { emptyDatabaseOfTest, useDatabase } from '../../support/databases.js';
import { environmentOf, type ServiceProcess, startServiceProcess, TestProcess } from '../../support/processes.js';
import { PROJECT, temporaryFolder } from '../../support/project-files.js';
import { ACME_SITE, writeRegistry } from '../../support/test-registry.js';
import { httpClientOf } from '../../support/test-service.js';

/** What a team compiles its TypeScript to, without the decorators. */
const EXTENSION = `
import { CustomerService, defineExtension, dropTables, createTables, Columns, GrantBody, GrantType } from '@customer-authorization/service/grant';

class GreetingGrant {
  constructor(customers) { this.customers = customers; }
  grant = async ({ client }) => ({ ...(await this.customers.create(client.organizationId)), response: { greeting: 'hello' } });
}
Reflect.defineMetadata('design:paramtypes', [CustomerService], GreetingGrant);
GrantType('greeting', { body: GrantBody, responds: ['greeting'] })(GreetingGrant);

class Greetings1796500000000 {
  name = 'Greetings1796500000000';
  async up(runner) {
    await createTables(runner, [{ name: 'greeting', columns: [new Columns(runner).key('id', 36)] }]);
  }
  async down(runner) { await dropTables(runner, ['greeting']); }
}

export default defineExtension({ grants: [GreetingGrant], migrations: [Greetings1796500000000] });
`;

const BIN = join(PROJECT, 'scripts/bin.js') as `/${string}`;
const folder = temporaryFolder('extension-file');
const write = (name: string, text: string) => writeFileSync(join(folder, name), text);

beforeAll(() => {
  mkdirSync(join(folder, 'node_modules/@customer-authorization'), { recursive: true });
  symlinkSync(PROJECT, join(folder, 'node_modules/@customer-authorization/service'));
  write('package.json', JSON.stringify({ name: 'greeting', type: 'module' }));
  write('extension.js', EXTENSION);
});

describe('the variable EXTENSION', () => {
  const database = useDatabase();
  const services: ServiceProcess[] = [];
  afterAll(() => Promise.all(services.map((service) => service.terminate())));

  it.each<[string, ...Parameters<typeof startServiceProcess>]>([
    ['customer-authorization-service start', { EXTENSION: 'extension.js' }, folder, BIN, ['start']],
    ['dist/main.js, with an absolute path', { EXTENSION: join(folder, 'extension.js') }, '/', 'main.js', []],
  ])('names the file whose grant and migrations the service has: %s', async (_, variables, ...program) => {
    const REGISTRY_FILE = writeRegistry(join(folder, 'registry.yaml'));
    const environment = { ...environmentOf(database), MIGRATE_ON_START: 'true', REGISTRY_FILE, ...variables };
    const service = await startServiceProcess(environment, ...program);
    services.push(service);
    const { post } = httpClientOf(service.url);
    const { status, body } = await post(TOKEN, { grant_type: 'greeting', client_id: ACME_SITE });
    expect({ status, greeting: body.greeting }).toEqual({ status: 200, greeting: 'hello' });
  });

  it.each<[string, `/${string}` | 'cli.js']>([
    ['customer-authorization-service migrate', BIN],
    ['dist/cli.js migrate', 'cli.js'],
  ])('names the file whose migrations the command line runs: %s', async (_, program) => {
    const environment = environmentOf(await emptyDatabaseOfTest());
    const run = (more: object, ...parameters: string[]) =>
      TestProcess.start(program, ['migrate', ...parameters], { ...environment, ...more }, folder).ended;
    const ofExtension = { EXTENSION: 'extension.js' };
    expect((await run({})).code).toBe(0);
    expect([(await run({}, '--check')).code, (await run(ofExtension, '--check')).code]).toEqual([0, 1]);
    const { code, stdout, stderr } = await run(ofExtension);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Greetings1796500000000');
    expect((await run(ofExtension, '--check')).code).toBe(0);
  });

  it.each([
    ['has no default export', 'no-default.js', 'export const extension = 1;', 'is not the result of defineExtension'],
    [
      'has another default export',
      'other.js',
      'export default { grants: [] };',
      'is not the result of defineExtension',
    ],
    ['does not exist', 'missing.js', undefined, 'missing.js'],
    ['throws', 'throws.js', "throw new Error('no configuration of the team');", 'no configuration of the team'],
  ])('stops the start with one sentence if its file %s', async (_, name, text, reason) => {
    if (text !== undefined) write(name, text);
    const environment = { ...environmentOf(database), EXTENSION: name };
    for (const command of ['start', 'migrate']) {
      const process = TestProcess.start(BIN, [command], environment, folder);
      await process.says(/for callers/).then(
        () => process.signal('SIGKILL'),
        () => undefined,
      );
      const { code, stderr } = await process.ended;
      expect(code).toBe(1);
      expect(stderr.trim().split('\n')).toEqual([expect.stringContaining(reason)]);
    }
  });
});
