import type { Extension } from '../extension.js';
import { RegistryFile } from '../registry/file/registry-file.js';
import { withApplication } from './application.js';
import { expectParameters, UsageError } from './usage-error.js';

/** `registry apply [--force] FILE` and `registry export`. */
export async function registryCommand([action, ...parameters]: string[], extension: Extension): Promise<number> {
  if (action === 'apply') return applyFile(parameters, extension);
  if (action !== 'export') throw new UsageError('registry what?');
  expectParameters(parameters, 0);
  process.stdout.write(await withApplication(extension, (application) => application.get(RegistryFile).export()));
  return 0;
}

async function applyFile(parameters: string[], extension: Extension): Promise<number> {
  const force = parameters[0] === '--force';
  const paths = force ? parameters.slice(1) : parameters;
  expectParameters(paths, 1);
  const [path = ''] = paths;
  if (path.startsWith('--')) throw new UsageError(`no such option: ${path}`);
  const applied = await withApplication(extension, (application) =>
    application.get(RegistryFile).apply(path, { force }),
  );
  process.stdout.write(applied.map(({ outcome, kind, id }) => `${outcome}: ${kind} ${id}\n`).join(''));
  return 0;
}
