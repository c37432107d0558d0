import type { INestApplicationContext } from '@nestjs/common';
import { DATABASE_VARIABLES } from '../platform/configuration/load-configuration.js';
import { RegistryFile } from '../registry/file/registry-file.js';
import { type CommandContext, expectParameters, UsageError } from './command-context.js';

/** `registry apply [--force | --merge] FILE` and `registry export`. */
export async function registryCommand([action, ...parameters]: string[], context: CommandContext): Promise<number> {
  if (action === 'apply') return applyFile(parameters, context);
  if (action !== 'export') throw new UsageError('registry: expected apply or export');
  expectParameters(parameters, 0);
  const work = (application: INestApplicationContext) => application.get(RegistryFile).export();
  context.print(await context.withApplication(work, { variables: DATABASE_VARIABLES }));
  return 0;
}

async function applyFile(parameters: string[], context: CommandContext): Promise<number> {
  const force = parameters[0] === '--force';
  const merge = parameters[0] === '--merge';
  const paths = force || merge ? parameters.slice(1) : parameters;
  expectParameters(paths, 1);
  const [path = ''] = paths;
  if (path.startsWith('--')) throw new UsageError(`unknown option: ${path}`);
  const options = { force, compare: force, merge };
  const work = (application: INestApplicationContext) => application.get(RegistryFile).apply(path, options);
  const applied = await context.withApplication(work, { variables: DATABASE_VARIABLES, createsDatabase: true });
  context.print(applied.map(({ outcome, kind, id }) => `${outcome}: ${kind} ${id}\n`).join(''));
  return 0;
}
