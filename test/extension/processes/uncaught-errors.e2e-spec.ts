import { appendFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { useDatabase } from '../../support/databases.js';
import { environmentOf, PRODUCTION, type ServiceProcess, startServiceProcess } from '../../support/processes.js';
import { PROJECT } from '../../support/project-files.js';
import { ACME_NATIVE, ACME_PAGE, ACME_SITE, writeRegistry } from '../../support/test-registry.js';

/** The package of an extension whose author forgets each `await`, next to a copy of the built service. */
const MAIN = `
import 'reflect-metadata';
import { EventEmitter } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { forwardRef, Get, Injectable, Module, Param } from '@nestjs/common';
import { IsString } from 'class-validator';
import { runService } from '../service/dist/public/service.js';
import { ApiRoute, GrantBody, GrantType, CustomerService, GrantStoresModule, OAuthError, PublicController } from '../service/dist/public/grant.js';
import { send } from 'provider-client';

const REFUSING = 1;
const decorate = (target, types, ...decorators) => {
  Reflect.defineMetadata('design:paramtypes', types, target);
  for (const decorator of decorators) decorator(target);
  return target;
};

const mistakes = {
  async_function: () => void (async () => { await sleep(1); throw new Error('a provider is away'); })(),
  library: () => void send(),
  native: () => void fetch('http://127.0.0.1:' + REFUSING),
  text: () => void Promise.reject('a text'),
  nothing: () => void Promise.reject(),
  no_stack: () => void Promise.reject(Object.assign(new Error('x'), { stack: 5 })),
  its_own_cause: () => { const error = new Error('x'); error.cause = error; void Promise.reject(error); },
  method_of_service: (customers) => void customers.findOrCreateForBrowser(),
  timer: () => void setTimeout(() => { throw new Error('a timer'); }, 1),
  emitter: () => void setImmediate(() => new EventEmitter().emit('error', new Error('an emitter'))),
  socket: () => void connect(REFUSING, '127.0.0.1'),
  late: () => void setTimeout(() => void Promise.reject('a text'), 100),
};

class Body extends GrantBody {}
IsString()(Body.prototype, 'mistake');

class FloatingGrant {
  constructor(customers) { this.customers = customers; }
  grant = async ({ body }) => {
    mistakes[body.mistake](this.customers);
    throw OAuthError.invalidGrant('a grant of a test');
  };
}
decorate(FloatingGrant, [CustomerService], Injectable(), GrantType('floating', { body: Body }));

class FloatingController {
  constructor(customers) { this.customers = customers; }
  get(mistake) { mistakes[mistake](this.customers); }
}
decorate(FloatingController, [CustomerService], PublicController('floating'));
const route = Object.getOwnPropertyDescriptor(FloatingController.prototype, 'get');
Get(':mistake')(FloatingController.prototype, 'get', route);
ApiRoute({ summary: 'Forget an await' })(FloatingController.prototype, 'get', route);
Param('mistake')(FloatingController.prototype, 'get', 0);

class FloatingModule {
  constructor(customers) {
    this.customers = customers;
    setTimeout(mistakes.native, 1);
  }
  configure(consumer) {
    const middleware = (request, _response, next) => {
      mistakes[request.headers['x-mistake']]?.();
      next();
    };
    consumer.apply(middleware).forRoutes('{*path}');
  }
  onModuleInit() {
    void Promise.reject(new Error('at the start'));
    setTimeout(() => mistakes.method_of_service(this.customers), 100);
  }
}
decorate(FloatingModule, [CustomerService], Module({ imports: [GrantStoresModule], controllers: [FloatingController], providers: [FloatingGrant] }));

class ReferredGrant extends FloatingGrant {}
decorate(ReferredGrant, [CustomerService], Injectable(), GrantType('referred', { body: Body }));
class ReferredModule {}
decorate(ReferredModule, [], Module({ imports: [GrantStoresModule], providers: [ReferredGrant] }));
class ReferringModule {}
decorate(ReferringModule, [], Module({ imports: [forwardRef(() => ReferredModule)] }));

if (!process.env.ALONE) setTimeout(mistakes.library, 1);
await runService(process.env.ALONE ? {} : { modules: [FloatingModule, ReferringModule] });
`;
const LIBRARY =
  'export async function send() { await new Promise(setImmediate); throw new Error("a provider is away"); }';
/** What a defect in the code of the service does. */
const DEFECTS = `
process.on('SIGUSR2', () => void Promise.reject(new Error('a defect of the service')));
process.on('SIGWINCH', () => { throw new Error('a defect of the service'); });
`;
const MISTAKES = [
  ...['async_function', 'library', 'native', 'text', 'nothing', 'no_stack', 'its_own_cause', 'method_of_service'],
  ...['timer', 'emitter', 'socket'],
];
/** The mistakes of the constructor, of `onModuleInit` and of the file itself. */
const AT_START_COUNT = 4;
const PACKAGE = 'floating-extension';

const folder = mkdtempSync(join(tmpdir(), 'floating-'));
const main = join(folder, 'extension', 'main.js') as `/${string}`;

beforeAll(() => {
  const [service, extension] = [join(folder, 'service'), join(folder, 'extension')];
  for (const name of ['dist', 'package.json']) cpSync(join(PROJECT, name), join(service, name), { recursive: true });
  appendFileSync(join(service, 'dist/run-service.js'), DEFECTS);
  const library = join(extension, 'node_modules/provider-client');
  mkdirSync(library, { recursive: true });
  writeFileSync(
    join(library, 'package.json'),
    JSON.stringify({ name: 'provider-client', type: 'module', exports: './index.js' }),
  );
  writeFileSync(join(library, 'index.js'), LIBRARY);
  symlinkSync(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(extension, 'package.json'), JSON.stringify({ name: PACKAGE, type: 'module' }));
  writeFileSync(main, MAIN);
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('a rejection or an exception that no code catches', () => {
  const database = useDatabase(createTestDatabase);
  const start = (more = {}) => {
    const REGISTRY_FILE = writeRegistry(join(folder, 'registry.yaml'));
    const environment = { ...environmentOf(database), ...PRODUCTION, MIGRATE_ON_START: 'true', REGISTRY_FILE };
    return startServiceProcess({ ...environment, ...more }, folder, main);
  };
  const linesOf = ({ process }: ServiceProcess) =>
    process.stdout
      .split('\n')
      .filter((line) => line.includes('"package"'))
      .map((line) => JSON.parse(line));
  const countOf = async ({ managementUrl }: ServiceProcess) => {
    const text = await (await fetch(`${managementUrl}/metrics`)).text();
    return Number(new RegExp(`^cas_extension_errors_total{package="${PACKAGE}"} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
  };

  describe('in the code of an extension', () => {
    let service: ServiceProcess;
    beforeAll(async () => {
      service = await start();
    });
    afterAll(() => service?.terminate());

    const ask = (mistake: string) => fetch(`${service.url}/floating/${mistake}`);
    const redeem = (mistake: string, grant_type = 'floating') =>
      fetch(service.url + TOKEN, {
        method: 'POST',
        body: JSON.stringify({ grant_type, client_id: ACME_SITE, mistake }),
      });

    /** Makes a mistake, and waits until the service has counted it. */
    async function lineAfter(make: () => Promise<Response>): Promise<Record<string, unknown>> {
      const [lines, count] = [linesOf(service).length, await countOf(service)];
      const response = await make();
      await expect.poll(() => linesOf(service).length, { timeout: 10_000 }).toBe(lines + 1);
      expect(await countOf(service)).toBe(count + 1);
      return { ...linesOf(service).at(-1), requestId: response.headers.get('x-request-id') };
    }

    it('while it starts is logged and counted with the package, and the service starts', async () => {
      await expect.poll(() => countOf(service), { timeout: 10_000 }).toBe(AT_START_COUNT);
      expect(linesOf(service).map((line) => line.package)).toEqual(Array(AT_START_COUNT).fill(PACKAGE));
    });

    it.each(MISTAKES)('is logged and counted with its route, and ends nothing: %s', async (mistake) => {
      const line = await lineAfter(() => ask(mistake));
      expect(line).toMatchObject({ level: 'error', package: PACKAGE, method: 'GET', route: '/floating/:mistake' });
      expect(line.request_id).toBe(line.requestId);
      expect(line.msg).toMatch(/^(unhandled rejection|uncaught exception) of an extension$/);
      expect(JSON.stringify(line)).not.toContain('a text');
    });

    it.each(MISTAKES)('is logged and counted with its grant, and ends nothing: %s', async (mistake) => {
      const line = await lineAfter(() => redeem(mistake));
      expect(line).toMatchObject({ level: 'error', package: PACKAGE, route: TOKEN, grant: 'floating' });
    });

    it('is logged and counted with its grant if a module of the extension imports the other by reference', async () => {
      const line = await lineAfter(() => redeem('method_of_service', 'referred'));
      expect(line).toMatchObject({ level: 'error', package: PACKAGE, route: TOKEN, grant: 'referred' });
    });

    it('is logged and counted, and ends nothing, in middleware during a request of the service', async () => {
      const line = await lineAfter(() =>
        fetch(service.url + TOKEN, {
          method: 'POST',
          headers: { 'x-mistake': 'library' },
          body: JSON.stringify(cookieBody({ redirect_uri: ACME_PAGE })),
        }),
      );
      expect(line).toMatchObject({ level: 'error', package: PACKAGE, route: TOKEN, grant: 'cookie' });
    });

    it('is logged and counted, and ends nothing, in middleware during a request for the token of an agent', async () => {
      const grant_type = 'authorization_code';
      const line = await lineAfter(() =>
        fetch(`${service.url}/v2/token`, {
          method: 'POST',
          headers: { 'x-mistake': 'late' },
          body: JSON.stringify({ grant_type, client_id: ACME_NATIVE, code: 'dev:none', redirect_uri: ACME_PAGE }),
        }),
      );
      expect(line).toMatchObject({ level: 'error', package: PACKAGE, route: '/v2/token', grant: grant_type });
    });

    it('changes no response, and the service is ready', async () => {
      expect((await ask('native')).status).toBe(200);
      expect((await redeem('native')).status).toBe(400);
      expect((await fetch(`${service.managementUrl}/health/ready`)).status).toBe(200);
    });
  });

  describe('in the code of the service', () => {
    it.each([
      ['SIGUSR2', 'unhandled rejection', {}],
      ['SIGWINCH', 'uncaught exception', {}],
      ['SIGUSR2', 'unhandled rejection', { ALONE: 'true' }],
      ['SIGWINCH', 'uncaught exception', { ALONE: 'true' }],
    ] as const)('ends the process after a line in the log (%s: %s, %j)', async (signal, kind, more) => {
      const service = await start(more);
      service.process.signal(signal);
      const { code, stdout } = await service.process.ended;
      expect(code).toBe(1);
      const line = JSON.parse(stdout.trim().split('\n').at(-1) as string);
      expect(line).toMatchObject({ level: 'fatal', msg: `${kind} of the service: the process ends` });
      expect(line.cause).toMatch(/^Error: a defect of the service\n +at .*run-service\.js/);
    });

    it('ends the process if no extension is loaded and the stack names no file of the service', async () => {
      const main = join(folder, 'extension', 'alone.js') as `/${string}`;
      writeFileSync(
        main,
        `import { runService } from '../service/dist/public/service.js';
        const service = await runService();
        void fetch('http://127.0.0.1:1');`,
      );
      const { process } = await startServiceProcess({ ...environmentOf(database), ...PRODUCTION }, folder, main);
      expect((await process.ended).code).toBe(1);
      expect(process.stdout).toContain('unhandled rejection of the service: the process ends');
    });
  });
});
