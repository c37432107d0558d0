import { writeFileSync } from 'node:fs';
import { stringify } from 'yaml';

/** The content of a registry file (docs/operations.md). */
export interface RegistryDocument {
  organizations?: object[];
  clients?: object[];
  resource_servers?: object[];
  agents?: object[];
}

export function writeRegistryFile(path: string, registry: RegistryDocument): string {
  writeFileSync(path, stringify(registry));
  return path;
}
