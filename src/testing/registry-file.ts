import { writeFileSync } from 'node:fs';
import { stringify } from 'yaml';

/** A registry as its YAML file writes it (docs/operations.md). */
export interface RegistryDocument {
  organizations?: object[];
  clients?: object[];
  resource_servers?: object[];
  agents?: object[];
}

/** Writes a registry to a file; answers its path. */
export function writeRegistryFile(path: string, registry: RegistryDocument): string {
  writeFileSync(path, stringify(registry));
  return path;
}
