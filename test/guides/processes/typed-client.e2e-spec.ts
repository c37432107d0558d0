import { execFile } from 'node:child_process';
import { cpSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import ts from 'typescript';
import { beforeAll, expect, it } from 'vitest';
import { PROJECT, temporaryFolder } from '../../support/project-files.js';
import { ACME, ACME_SITE } from '../../support/test-registry.js';
import { useService } from '../../support/use-service.js';

const EXAMPLE = 'typed-client.ts';
const WRONG = 'wrong.ts';
const GENERATOR = fileURLToPath(new URL('../bin/cli.js', import.meta.resolve('openapi-typescript')));
const WRONG_CALLS = `import createClient from 'openapi-fetch';
import type { paths } from './service.js';
const service = createClient<paths>({ baseUrl: '' });
await service.GET('/v2/customer/nothing', {});
await service.POST('/v2/customer/token', { body: { grant_type: 'cookie' } });
export const { data } = await service.GET('/v2/customer/info');
export const name = data?.name;
`;

const run = promisify(execFile);

const service = useService();
/** A project with the example, and the types that the generator makes of the document of a running service. */
const folder = temporaryFolder('typed-client');
beforeAll(async () => {
  const document = join(folder, 'openapi.json');
  writeFileSync(document, (await service.send('GET', '/openapi.json')).text);
  await run(process.execPath, [GENERATOR, document, '--output', join(folder, 'service.d.ts')]);
  cpSync(join(PROJECT, 'examples/integrating', EXAMPLE), join(folder, EXAMPLE));
  writeFileSync(join(folder, WRONG), WRONG_CALLS);
  symlinkSync(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
});

/** Compiles both files strictly. Returns the errors by file. */
function compile(): Record<string, string> {
  const options: ts.CompilerOptions = {
    ...{ target: ts.ScriptTarget.ES2022, lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'], types: [] },
    ...{ module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext },
    ...{ strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, skipLibCheck: false },
  };
  const program = ts.createProgram([join(folder, EXAMPLE), join(folder, WRONG)], options);
  program.emit();
  const errors: Record<string, string> = {};
  for (const { file, messageText } of ts.getPreEmitDiagnostics(program)) {
    const name = basename(file?.fileName ?? '');
    errors[name] = `${errors[name] ?? ''}${ts.flattenDiagnosticMessageText(messageText, '\n')}\n`;
  }
  return errors;
}

it('a client with the generated types compiles strictly, rejects wrong calls, and makes five calls', async () => {
  const { [WRONG]: wrong, ...others } = compile();
  expect(others).toEqual({});
  for (const name of ['/v2/customer/nothing', 'client_id', "'name' does not exist"]) expect(wrong).toContain(name);

  // a process of its own, because the client sends `Request` objects to the global `fetch`, which the tests replace
  const program = `import { fiveCalls } from './typed-client.js';
    console.log(JSON.stringify(await fiveCalls(...process.argv.slice(1))));`;
  const args = ['--input-type=module', '-e', program, service.url, ACME_SITE, ACME];
  const [customer, ...rest] = JSON.parse((await run(process.execPath, args, { cwd: folder })).stdout);
  expect(customer).toMatch(/^[\w-]{36}$/);
  expect(rest).toEqual([customer, expect.any(Number), 1, 200]);
});
