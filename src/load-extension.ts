import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Extension } from './token/extension.js';

/**
 * Loads the extension of another team, which EXTENSION names: a file that has the result of `defineExtension` as its
 * default export. Without EXTENSION, the service has no extension.
 *
 * @throws Error if the file has no extension, or cannot be loaded
 */
export async function loadExtension(environment: NodeJS.ProcessEnv = process.env): Promise<Extension> {
  if (environment.EXTENSION_FILE) throw new Error('EXTENSION_FILE: not supported; name the file in EXTENSION');
  const path = environment.EXTENSION?.trim();
  if (!path) return {};
  const { default: extension } = (await import(pathToFileURL(resolve(path)).href)) as { default?: Extension };
  if (Array.isArray(extension?.modules)) return extension;
  throw new Error(`EXTENSION: the default export of ${path} is not the result of defineExtension`);
}
