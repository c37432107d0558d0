import { createRequire } from 'node:module';

const load = createRequire(import.meta.url);

/**
 * Loads a package at its first use. A package that not every process needs would cost each process memory and time at
 * its start (docs/performance.md). `loadWhenUsed<typeof import('name')>('name')`
 */
export function loadWhenUsed<Package>(name: string): Package {
  return load(name);
}
