import { Injectable } from '@nestjs/common';
import { MoreThan, type ObjectLiteral } from 'typeorm';
import { encodeCursor, PageQuery, rangeOf } from '../../oauth/pages.js';
import { Database } from '../../platform/database/database.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { IsUuid } from '../../platform/validation/text-rules.js';
import { Optional } from '../../platform/validation/validation.js';
import { type EntryKind, listOf, relationsOf } from '../../registry/entries/entry-kind.js';

export class OrganizationListQuery extends PageQuery {
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
    { organization_id: organizationId, ...query }: OrganizationListQuery,
  ): Promise<RowPage<Row>> {
    const { column } = kind.key;
    const { after, limit } = rangeOf(listOf(kind), query);
    const where: object = { ...(organizationId !== undefined && { organizationId }), [column]: MoreThan(after) };
    const order: object = { [column]: 'ASC' };
    // one more than the page has, so that a full page knows whether an entry follows
    const page = { where, order, take: limit + 1, relations: relationsOf(kind) };
    // a join would read the keys before the rows, and an entry that is deleted in between would end the list
    const found = await this.database.manager.find<Row>(kind.entity, { ...page, relationLoadStrategy: 'query' });
    const rows = found.slice(0, limit);
    if (found.length === rows.length) return { rows };
    return { rows, next_cursor: encodeCursor(listOf(kind), rows.at(-1)?.[column]) };
  }
}
