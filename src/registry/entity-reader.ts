import { setImmediate as nextTick } from 'node:timers/promises';
import type { Type } from '@nestjs/common';
import { type EntityManager, getMetadataArgsStorage } from 'typeorm';
import { selectIn } from '../platform/database/in-transaction.js';
import { PAGE_READ } from '../platform/database/retry-policy.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { type SelectStatement, selectStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';

/** Small enough that the event loop serves requests between two pages without a visible delay. */
const ROWS_PER_PAGE = 250;

/** Longer texts are rarely equal. */
const MAX_SHARED_CHARACTERS = 200;
const MAX_SHARED_TEXTS = 1_000;

type Row = Record<string, unknown>;
type Convert = (value: unknown, json: SharedJson) => unknown;

/** Sends a SELECT, inside or outside of a transaction: `Database`, or `readsIn` a transaction. */
export interface Reads {
  select(statement: SelectStatement<string[], Row>, parameters: string[]): Promise<Row[]>;
}

/** Reads in the transaction of `Database.transaction`. */
export function readsIn(manager: EntityManager): Reads {
  return { select: (statement, parameters) => selectIn(manager, statement, parameters) };
}

interface Column {
  name: string;
  property: string;
  convert: Convert;
}

/**
 * Reads the rows of one entity in pages, and creates entities from them. TypeORM would create more objects for each
 * row, and would read the table at once.
 */
export class EntityReader<Entity extends object> {
  private readonly columns: Column[];
  private readonly byKey: SelectStatement<string[], Row>;
  private readonly pages: Record<'all' | 'ownedByFile', SelectStatement<string[], Row>>;
  /** The statement for a `valueList` of keys. */
  private readonly byKeys: (list: string[]) => SelectStatement<string[], Row>;

  /** @param key the property by which rows are found and sorted: the primary key, or one with a unique index */
  constructor(
    private readonly entity: Type<Entity>,
    private readonly key: keyof Entity & string,
  ) {
    this.columns = columnsOf(entity);
    const names = this.columns.map(({ name }) => name);
    const from = `${tableOf(entity)} WHERE`;
    const select = `SELECT ${names.join(', ')} FROM ${from}`;
    const keyName = this.columns.find(({ property }) => property === key)?.name;
    const page = (filter: string) =>
      selectStatement<string[], Row>(`${select} ${filter}${keyName} > ? ORDER BY ${keyName} LIMIT ${ROWS_PER_PAGE}`);
    this.byKey = selectStatement({ columns: names, from: `${from} ${keyName} = ?`, batch: true });
    this.pages = { all: page(''), ownedByFile: page('owned_by_file = 1 AND ') };
    this.byKeys = (list) => selectStatement(`${select} ${keyName} IN (${placeholdersFor(list)})`);
  }

  /** The row with a key. Statements of one event-loop tick are sent as one. */
  async find(reads: Reads, key: string): Promise<Entity | undefined> {
    const [row] = await reads.select(this.byKey, [key]);
    return row && this.toEntity(row, new SharedJson());
  }

  /** All rows, or those that the registry file lists, in pages. */
  async *inPages(reads: Reads, rows: 'all' | 'ownedByFile' = 'all'): AsyncGenerator<Entity[], void> {
    const json = new SharedJson();
    for (let after = ''; ; await nextTick()) {
      const page = await this.read(reads, this.pages[rows], [after], json);
      yield page;
      if (page.length < ROWS_PER_PAGE) return;
      after = String(page.at(-1)?.[this.key]);
    }
  }

  /** The rows with these keys, in portions. */
  async *withKeys(reads: Reads, keys: Iterable<string>): AsyncGenerator<Entity[], void> {
    const json = new SharedJson();
    for (const portion of portionsOf([...keys], ROWS_PER_PAGE)) {
      const list = valueList(portion);
      yield await this.read(reads, this.byKeys(list), list, json);
      await nextTick();
    }
  }

  private async read(reads: Reads, statement: SelectStatement<string[], Row>, keys: string[], json: SharedJson) {
    const rows = await PAGE_READ.run(() => reads.select(statement, keys));
    return rows.map((row) => this.toEntity(row, json));
  }

  private toEntity(row: Row, json: SharedJson): Entity {
    const entity: Row = new this.entity() as Row;
    for (const { name, property, convert } of this.columns) entity[property] = convert(row[name], json);
    return entity as Entity;
  }
}

function tableOf(entity: Type): string {
  return getMetadataArgsStorage().tables.find(({ target }) => target === entity)?.name as string;
}

function columnsOf(entity: Type): Column[] {
  const columns = getMetadataArgsStorage().columns.filter(({ target }) => target === entity);
  return columns.map(({ propertyName, options: { name = propertyName, type } }) => {
    return { name, property: propertyName, convert: CONVERSIONS.get(type as string) ?? asIs };
  });
}

const asIs: Convert = (value) => value;

/** mysql2 and libsql return some types in different forms. */
const CONVERSIONS = new Map<string, Convert>([
  ['boolean', (value) => (value === null ? null : Boolean(value))],
  ['datetime', (value) => (value === null ? null : new Date(timeOf(value as Date | string)))],
  ['simple-json', (value, json) => (value === null ? null : json.parse(value as string))],
]);

/**
 * Parses JSON columns. Equal short texts, such as lists of scopes, share one value, which takes less memory. The values
 * are therefore frozen.
 */
class SharedJson {
  private readonly values = new Map<string, unknown>();

  parse(text: string): unknown {
    const shared = this.values.get(text);
    if (shared !== undefined) return shared;
    const value = frozen(JSON.parse(text));
    if (text.length <= MAX_SHARED_CHARACTERS && this.values.size < MAX_SHARED_TEXTS) this.values.set(text, value);
    return value;
  }
}

function frozen(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}
