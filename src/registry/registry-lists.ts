import { Injectable } from '@nestjs/common';
import { In, MoreThan, type ObjectLiteral } from 'typeorm';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { declaredProperties } from '../platform/validation.js';
import { type Entry, toResponse } from './entry.js';
import { cursorAfter, MAX_PAGE_ENTRIES, PageQuery, startOfPage } from './page-query.js';
import type { RegistryResource } from './resources/registry-resource.js';

const ROWS_PER_PORTION = 250;
/** Entries whose names one request examines at most. */
const MAX_EXAMINED_ROWS = 20_000;

export class ListQuery extends PageQuery {
  @ApiProperty('Only entries of this organization.', EXAMPLE.organizationId)
  organization_id?: string;
  @ApiProperty('Only entries whose name contains this text. Upper and lower case are the same.', 'Acme')
  name?: string;
}

export const filtersOf = ({ entry }: RegistryResource): string[] =>
  ['organization_id', 'name'].filter((field) => declaredProperties(entry).includes(field));

/** By key and not by offset: an entry that exists during the whole reading of a list is in exactly one page. */
@Injectable()
export class RegistryLists {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** The names are compared here, because the databases treat upper and lower case differently. */
  async page(resource: RegistryResource, query: ListQuery): Promise<object> {
    const { list } = resource;
    const { column } = resource.key;
    const { organization_id: organizationId, name } = query;
    const limit = Number(query.limit ?? MAX_PAGE_ENTRIES);
    const keys: string[] = [];
    const searched = name?.toLowerCase() ?? '';
    const take = name === undefined ? limit + 1 : ROWS_PER_PORTION;
    const filter = organizationId === undefined ? {} : { organizationId };
    let lastKey = startOfPage(list, query);
    const page = async () => ({
      [list]: await this.entries(resource, keys, filter),
      next_cursor: cursorAfter(list, lastKey),
    });
    for (let examined = 0; examined < MAX_EXAMINED_ROWS; examined += take) {
      const where = { [column]: MoreThan(lastKey), ...filter };
      const select = { [column]: true, ...(name !== undefined && { name: true }) };
      const rows = await this.database.manager.find(resource.entity, {
        select,
        where,
        order: { [column]: 'ASC' },
        take,
      });
      for (const row of rows) {
        if (nameOf(row).toLowerCase().includes(searched)) {
          if (keys.length === limit) return page();
          keys.push(row[column]);
        }
        lastKey = String(row[column]);
      }
      if (rows.length < take) return { [list]: await this.entries(resource, keys, filter) };
    }
    return page();
  }

  private async entries(resource: RegistryResource, keys: string[], filter: ObjectLiteral): Promise<Entry[]> {
    const { column } = resource.key;
    const where = { ...filter, [column]: In(keys) };
    const rows = await this.database.manager.find(resource.entity, { where, order: { [column]: 'ASC' } });
    return rows.map((row) => toResponse(resource, row, this.clock.now()));
  }
}

function nameOf({ name }: ObjectLiteral): string {
  return typeof name === 'string' ? name : '';
}
