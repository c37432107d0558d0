import { setImmediate as nextTick } from 'node:timers/promises';
import type { Type } from '@nestjs/common';
import { type EntityManager, MoreThan, type ObjectLiteral } from 'typeorm';

/** Small enough that the event loop serves requests between two pages without a visible delay. */
export const ROWS_PER_PAGE = 250;

/**
 * A row that stays after the deletion of its entry, so that each process learns of the deletion, and that no new entry
 * takes over what is left of the old one.
 */
export interface RetainedRow {
  revision: number;
  deletedAt: Date | null;
}

/** In the order of a unique column. `take` is the number of rows of a page. */
export async function* pagesOf<Row extends ObjectLiteral>(
  manager: EntityManager,
  entity: Type<Row>,
  column: string,
  filter: object = {},
  options: { withDeleted?: boolean; select?: object; relations?: object; take?: number } = {},
): AsyncGenerator<Row[], void> {
  for (let after = ''; ; await nextTick()) {
    const where: object = { ...filter, [column]: MoreThan(after) };
    const order: object = { [column]: 'ASC' };
    const take = options.take ?? ROWS_PER_PAGE;
    const page = await manager.find(entity, { ...options, where, order, take });
    yield page;
    if (page.length < take) return;
    after = String(page.at(-1)?.[column]);
  }
}

/** The rows that changed after a revision, deleted ones too, in the order of the index on both columns. */
export async function* pagesSince<Row extends RetainedRow>(
  manager: EntityManager,
  entity: Type<Row>,
  column: string,
  revision: number,
): AsyncGenerator<Row[], void> {
  const order: object = { revision: 'ASC', [column]: 'ASC' };
  for (let where: object = { revision: MoreThan(revision) }; ; await nextTick()) {
    const page = await manager.find(entity, { where, order, take: ROWS_PER_PAGE, withDeleted: true });
    yield page;
    const last: (Row & ObjectLiteral) | undefined = page[ROWS_PER_PAGE - 1];
    if (!last) return;
    where = [{ revision: MoreThan(last.revision) }, { revision: last.revision, [column]: MoreThan(last[column]) }];
  }
}
