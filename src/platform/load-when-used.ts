import { createRequire } from 'node:module';

const load = createRequire(import.meta.url);

/**
 * Loads a package at its first use. A package that only some processes need would otherwise cost every process memory
 * and time at the start (docs/performance.md). `loadWhenUsed<typeof import('name')>('name')`
 */
export function loadWhenUsed<Package>(name: string): Package {
  return load(name);
}
