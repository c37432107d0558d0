import { createRequire } from 'node:module';

const load = createRequire(import.meta.url);

/**
 * Loads a package when it is first used: one that not every process needs would cost each of them time to start and memory
 * (docs/performance.md). `loadWhenUsed<typeof import('name')>('name')`
 */
export function loadWhenUsed<Package>(name: string): Package {
  return load(name);
}
