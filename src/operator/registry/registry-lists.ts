import { Injectable } from '@nestjs/common';
import { MaxLength } from 'class-validator';
import { In, MoreThan, type ObjectLiteral } from 'typeorm';
import { encodeCursor, PageQuery, rangeOf } from '../../oauth/pages.js';
import { Database } from '../../platform/database/database.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { IsUuid } from '../../platform/validation/text-rules.js';
import { Optional } from '../../platform/validation/validation.js';
import { type EntryKind, listOf, relationsOf } from '../../registry/entries/entry-kind.js';

/** More than a page can have, so that a full page knows whether an entry follows. */
const ROWS_PER_PORTION = 250;
/** Entries whose names one request examines at most. */
const MAX_EXAMINED_ROWS = 20_000;

const MAX_NAME_CHARACTERS = 200;

export class NamedListQuery extends PageQuery {
  @Optional()
  @MaxLength(MAX_NAME_CHARACTERS)
  @ApiProperty('Only entries whose name contains this text. Upper and lower case are the same.', 'Acme')
  name?: string;
}

export class OrganizationListQuery extends NamedListQuery {
  @Optional()
  @IsUuid()
  @ApiProperty('Only entries of this organization.', EXAMPLE.organizationId)
  organization_id?: string;
}

export interface RowPage<Row> {
  rows: Row[];
  next_cursor?: string | undefined;
}

/** By key and not by offset: an entry that exists during the whole reading of a list is in exactly one page. */
@Injectable()
export class RegistryLists {
  constructor(private readonly database: Database) {}

  async page<Row extends ObjectLiteral>(
    kind: EntryKind<object, Row>,
    query: OrganizationListQuery,
  ): Promise<RowPage<Row>> {
    const { keys, next_cursor } = await this.keysOf(kind, query);
    const { column } = kind.key;
    const where: object = { [column]: In(keys) };
    const order: object = { [column]: 'ASC' };
    const options = { where, order, relations: relationsOf(kind) };
    return { rows: await this.database.manager.find<Row>(kind.entity, options), next_cursor };
  }

  /** The names are compared here, because the databases treat upper and lower case differently. */
  private async keysOf(
    kind: EntryKind,
    { organization_id: organizationId, name, ...range }: OrganizationListQuery,
  ): Promise<{ keys: string[]; next_cursor?: string }> {
    const { column } = kind.key;
    const filter = organizationId === undefined ? {} : { organizationId };
    const select = name === undefined ? { [column]: true } : { [column]: true, name: true };
    const keys: string[] = [];
    let { after, limit } = rangeOf(listOf(kind), range);
    for (let examined = 0; examined < MAX_EXAMINED_ROWS; examined += ROWS_PER_PORTION) {
      const rows = await this.database.manager.find(kind.entity, {
        select,
        where: { ...filter, [column]: MoreThan(after) },
        order: { [column]: 'ASC' },
        take: ROWS_PER_PORTION,
      });
      for (const row of rows) {
        const isListed = name === undefined || row.name.toLowerCase().includes(name.toLowerCase());
        if (isListed && keys.length === limit) return { keys, next_cursor: encodeCursor(listOf(kind), after) };
        if (isListed) keys.push(row[column]);
        after = String(row[column]);
      }
      if (rows.length < ROWS_PER_PORTION) return { keys };
    }
    return { keys, next_cursor: encodeCursor(listOf(kind), after) };
  }
}
