import { Injectable } from '@nestjs/common';
import { type FindManyOptions, In, MoreThan, type ObjectLiteral } from 'typeorm';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { valueList } from '../platform/database/value-list.js';
import { declaredProperties } from '../platform/validation.js';
import { type Entry, toResponse } from './entry.js';
import { organizationResource } from './resources/organization.resource.js';
import type { RegistryResource } from './resources/registry-resource.js';

/** Keys and names that one statement reads. */
const MAX_PORTION_ROWS = 1_000;
/** Names that one request examines at most. */
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

/** Keys of a page, with the key after which the next page begins. */
interface PageKeys {
  keys: string[];
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

  async page(resource: RegistryResource, range: ListRange): Promise<ListPage> {
    const { keys, lastKey } = await this.keysOf(resource, range);
    if (keys.length === 0) return { entries: [], lastKey };
    const { column } = resource.key;
    const rows = await this.database.read(resource.entity, {
      where: { [column]: In(valueList(keys)) },
      order: { [column]: 'ASC' },
    });
    return { entries: rows.map((row) => toResponse(resource, row, this.clock.now())), lastKey };
  }

  /** The keys of a page. The names are compared here, because the databases treat upper and lower case differently. */
  private async keysOf(
    resource: RegistryResource,
    { after, limit, organizationId, name }: ListRange,
  ): Promise<PageKeys> {
    const keys: string[] = [];
    const portionRows = name === undefined ? limit + 1 : MAX_PORTION_ROWS;
    const searched = name?.toLowerCase() ?? '';
    let lastKey = after;
    for (let examined = 0; examined < MAX_EXAMINED_ROWS; examined += portionRows) {
      const rows = await this.portion(resource, lastKey, organizationId, portionRows);
      for (const row of rows) {
        if (!nameOf(row).toLowerCase().includes(searched)) continue;
        if (keys.length === limit) return { keys, lastKey: keys.at(-1) };
        keys.push(String(row[resource.key.column]));
      }
      if (rows.length < portionRows) return { keys, lastKey: undefined };
      lastKey = String(rows.at(-1)?.[resource.key.column]);
    }
    return { keys, lastKey };
  }

  private portion(
    resource: RegistryResource,
    after: string,
    organizationId: string | undefined,
    take: number,
  ): Promise<ObjectLiteral[]> {
    const { column } = resource.key;
    const columns = filterColumnsOf(resource);
    const options: FindManyOptions<ObjectLiteral> = {
      select: { [column]: true, ...(columns.name !== undefined && { [columns.name]: true }) },
      where: {
        [column]: MoreThan(after),
        ...(organizationId !== undefined && { [String(columns.organizationId)]: organizationId }),
      },
      order: { [column]: 'ASC' },
      take,
    };
    return this.database.read(resource.entity, options);
  }
}

function nameOf({ name }: ObjectLiteral): string {
  return typeof name === 'string' ? name : '';
}
