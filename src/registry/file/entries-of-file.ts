import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { EntityReader, type Select } from '../rows/entity-reader.js';
import { type AppliedEntry, unchangedEntry } from './apply-entries.js';

/** The entries that belong to the registry file, in the form of the result of applying it again. */
export async function entriesOfFile(select: Select): Promise<AppliedEntry[]> {
  const entries: AppliedEntry[] = [];
  for (const resource of REGISTRY_RESOURCES) {
    const { column } = resource.fileKey;
    for await (const rows of new EntityReader(resource.entity, column).inPages(select, 'ownedByFile'))
      for (const row of rows) entries.push(unchangedEntry(resource, row));
  }
  return entries;
}
