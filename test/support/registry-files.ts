import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { exportRegistry } from '../../src/operator/registry/file/registry-export.js';
import { RegistryFile } from '../../src/operator/registry/file/registry-file.js';
import { Database } from '../../src/platform/database/database.js';
import type { TestService } from './test-service.js';

export function registryFileOf({ application }: Pick<TestService, 'application'>): RegistryFile {
  return application.get(RegistryFile, { strict: false });
}

/** The registry as `registry export` prints it. */
export function exportOf({ application }: Pick<TestService, 'application'>): Promise<string> {
  return exportRegistry(application.get(Database).manager);
}

/** Writes a file into the folder of a database: a text unchanged, and an object as YAML. */
export function writeFileOf(
  { database }: Pick<TestService, 'database'>,
  content: object | string,
  name = `${randomUUID()}.yaml`,
): string {
  const path = join(database.folder, name);
  writeFileSync(path, typeof content === 'string' ? content : stringify(content));
  return path;
}

export function applyRegistry(service: TestService, content: object | string): ReturnType<RegistryFile['apply']> {
  return registryFileOf(service).apply(writeFileOf(service, content));
}
