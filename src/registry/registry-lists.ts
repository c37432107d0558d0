import { Injectable } from '@nestjs/common';
import { In, MoreThan, type ObjectLiteral } from 'typeorm';
import { Database } from '../platform/database/database.js';
import { type EntryKind, listOf } from './entries/entry-kind.js';
import { cursorAfter, MAX_PAGE_ENTRIES, type PageQuery, startOfPage } from './page-query.js';

const ROWS_PER_PORTION = 250;
/** Entries whose names one request examines at most. */
const MAX_EXAMINED_ROWS = 20_000;

/** The parameters of a list. Not each list has all of them. */
export interface ListQuery extends PageQuery {
  organization_id?: string;
  name?: string;
}

export interface RowPage<Row> {
  rows: Row[];
  next_cursor?: string;
}

/** By key and not by offset: an entry that exists during the whole reading of a list is in exactly one page. */
@Injectable()
export class RegistryLists {
  constructor(private readonly database: Database) {}

  /** The names are compared here, because the databases treat upper and lower case differently. */
  async page<Row extends ObjectLiteral>(kind: EntryKind<object, Row>, query: ListQuery): Promise<RowPage<Row>> {
    const { entity } = kind;
    const { column } = kind.key;
    const { organization_id: organizationId, name } = query;
    const limit = Number(query.limit ?? MAX_PAGE_ENTRIES);
    const keys: string[] = [];
    const searched = name?.toLowerCase() ?? '';
    const take = name === undefined ? limit + 1 : ROWS_PER_PORTION;
    const whereOf = (keyCondition: object): object => ({
      [column]: keyCondition,
      ...(organizationId !== undefined && { organizationId }),
    });
    const order: object = { [column]: 'ASC' };
    const rows = () => this.database.manager.find<Row>(entity, { where: whereOf(In(keys)), order });
    let lastKey = startOfPage(listOf(kind), query);
    const page = async () => ({
      rows: await rows(),
      next_cursor: cursorAfter(listOf(kind), lastKey),
    });
    for (let examined = 0; examined < MAX_EXAMINED_ROWS; examined += take) {
      const where = whereOf(MoreThan(lastKey));
      const select: object = { [column]: true, ...(name !== undefined && { name: true }) };
      const examinedRows = await this.database.manager.find<Row>(entity, { select, where, order, take });
      for (const row of examinedRows) {
        if (nameOf(row).toLowerCase().includes(searched)) {
          if (keys.length === limit) return page();
          keys.push(row[column]);
        }
        lastKey = String(row[column]);
      }
      if (examinedRows.length < take) return { rows: await rows() };
    }
    return page();
  }
}

function nameOf({ name }: ObjectLiteral): string {
  return typeof name === 'string' ? name : '';
}
