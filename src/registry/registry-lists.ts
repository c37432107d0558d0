import { Injectable } from '@nestjs/common';
import { MoreThan, type ObjectLiteral } from 'typeorm';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { declaredProperties } from '../platform/validation.js';
import { type Entry, toResponse } from './entry.js';
import { organizationResource } from './resources/organization.resource.js';
import type { RegistryResource } from './resources/registry-resource.js';

/** Entries that one statement of a search reads. */
const ROWS_PER_PORTION = 250;
/** Entries whose names one request examines at most. */
const MAX_EXAMINED_ROWS = 20_000;

/** A part of a list, in the order of the keys. */
export interface ListRange {
  /** The part begins after this key; an empty text is before every key. */
  after: string;
  /** The maximum number of entries. */
  limit: number;
  organizationId?: string | undefined;
  /** Only entries whose name contains this text. Upper and lower case are the same. */
  name?: string | undefined;
}

export interface ListPage {
  entries: Entry[];
  /** The key after which the next page begins; `undefined` after the last entry. */
  lastKey: string | undefined;
}

/** The columns by which a list can be filtered; `undefined` if its entries have no such field. */
export function filterColumnsOf({ entry, references }: RegistryResource): { organizationId?: string; name?: string } {
  const reference = references.find(({ resource }) => resource === organizationResource);
  return {
    ...(reference && { organizationId: reference.column }),
    ...(declaredProperties(entry).includes('name') && { name: 'name' }),
  };
}

/**
 * Reads the lists of the admin API from the database, by key and not by offset. An entry that exists during the whole
 * reading of a list is in exactly one of its pages.
 */
@Injectable()
export class RegistryLists {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** The names are compared here, because the databases treat upper and lower case differently. */
  async page(resource: RegistryResource, { after, limit, organizationId, name }: ListRange): Promise<ListPage> {
    const { column } = resource.key;
    const entries: Entry[] = [];
    const searched = name?.toLowerCase() ?? '';
    const take = name === undefined ? limit + 1 : ROWS_PER_PORTION;
    const filter = organizationId !== undefined && {
      [String(filterColumnsOf(resource).organizationId)]: organizationId,
    };
    let lastKey = after;
    for (let examined = 0; examined < MAX_EXAMINED_ROWS; examined += take) {
      const where = { [column]: MoreThan(lastKey), ...filter };
      const rows = await this.database.read(resource.entity, { where, order: { [column]: 'ASC' }, take });
      for (const row of rows) {
        if (nameOf(row).toLowerCase().includes(searched)) {
          if (entries.length === limit) return { entries, lastKey };
          entries.push(toResponse(resource, row, this.clock.now()));
        }
        lastKey = String(row[column]);
      }
      if (rows.length < take) return { entries, lastKey: undefined };
    }
    return { entries, lastKey };
  }
}

function nameOf({ name }: ObjectLiteral): string {
  return typeof name === 'string' ? name : '';
}
