import { createRequire } from 'node:module';

const load = createRequire(import.meta.url);

/** Packages that only some processes need cost the others no memory and no time at the start (docs/performance.md). */
export function loadWhenUsed<Package>(name: string): Package {
  return load(name);
}
