import { IsInt, IsOptional, Max, Min } from 'class-validator';
import type { PathAndEntry } from '../entries/entry.js';
import { Each } from '../resources/entry-rules.js';
import type { RegistryResource } from '../resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';

/** The maximum of the MySQL type `INT`. */
const MAX_REVISION = 2_147_483_647;

/** The registry file as an object (protocol §8.1), with a list for each resource. */
export class RegistryDocument {
  /** A file with a higher revision than each file before is applied, even if its content was replaced before. */
  @IsOptional()
  @IsInt()
  @Min(0)
  @Max(MAX_REVISION)
  revision?: number;

  [list: string]: unknown;

  constructor() {
    for (const { list } of REGISTRY_RESOURCES) this[list] = [];
  }
}

for (const { list, entry } of REGISTRY_RESOURCES) {
  Each(() => entry)(RegistryDocument.prototype, list);
  IsOptional()(RegistryDocument.prototype, list);
}

/**
 * The entries of a resource with their paths. Items that are not objects are left out, because the document may be
 * invalid.
 */
export function entriesIn(document: RegistryDocument, { list }: RegistryResource): PathAndEntry[] {
  const entries: unknown = document[list];
  return (Array.isArray(entries) ? entries : [])
    .map((entry, index): PathAndEntry => [`${list}[${index}]`, entry])
    .filter(([, entry]) => typeof entry === 'object' && entry !== null);
}
