import { getMetadataArgsStorage } from 'typeorm';
import type { SqlDialect, SqlText, SqlValue } from './sql-dialect.js';

/** A SELECT in parts, so that a batch is composed of them. */
export interface BatchedSelect {
  /** The select list: each column or expression with its name. */
  columns: readonly SqlText[];
  /** Everything after `FROM`; no lock, and an ORDER BY only with a LIMIT. */
  from?: SqlText;
  /** Says at the declaration that the statement is batched. Each SELECT in parts is. */
  batch: true;
}

/** Text whose meaning a batch would change: UNION, locks, and ORDER BY without LIMIT. */
const UNBATCHABLE = /\bUNION\b|\bFOR (?:UPDATE|SHARE)\b|\bORDER BY\b(?!.*\bLIMIT\b)/is;

/** @throws Error if a batch of this SELECT could return other rows than the single SELECTs */
function assertCanBeBatched({ columns, from }: BatchedSelect): void {
  for (const column of columns) {
    if (typeof column !== 'string') continue;
    if (column === '*' || column.endsWith('.*')) throw new Error('a batched SELECT names each of its columns');
    if (/^DISTINCT\b/i.test(column)) throw new Error('a batched SELECT cannot be DISTINCT');
  }
  if (typeof from === 'string' && UNBATCHABLE.test(from))
    throw new Error('a batched SELECT has no UNION and no lock, and ORDER BY only with LIMIT');
}

/** A statement, declared once as a constant. Its text is composed once for each dialect and size of a batch. */
export abstract class Statement<Parameters extends SqlValue[] = SqlValue[]> {
  declare protected readonly parameters: Parameters;
  private readonly texts = new Map<SqlDialect, string[]>();

  /** @internal */
  constructor(
    private readonly compose: (dialect: SqlDialect, size: number) => string,
    /** Whether statements of one event-loop tick may be sent as one. */
    readonly batch = false,
  ) {}

  /** The SQL text of `size` of these statements sent as one. @internal */
  text(dialect: SqlDialect, size = 1): string {
    let texts = this.texts.get(dialect);
    if (texts === undefined) {
      texts = [];
      this.texts.set(dialect, texts);
    }
    texts[size] ??= this.compose(dialect, size);
    return texts[size];
  }

  /** The writes, for several uses of this statement. If there are several, they are one transaction. @internal */
  writes(uses: SqlValue[][]): BoundWrite[] {
    return [{ statement: this, parameters: uses.flat(), size: uses.length }];
  }
}

/** A SELECT that `selectStatement` declared, for `Database.select`. */
export class SelectStatement<Parameters extends SqlValue[] = SqlValue[], Row = unknown> extends Statement<Parameters> {
  declare protected readonly row: Row;
}

/** An INSERT that `insertStatement` declared, for `Database.insert`. */
export class InsertStatement<Parameters extends SqlValue[] = SqlValue[]> extends Statement<Parameters> {
  declare protected readonly inserts: true;

  /** @internal */
  constructor(
    compose: (dialect: SqlDialect, size: number) => string,
    batch: boolean,
    private readonly parameterCount: number,
    /** Of a statement with rows of several tables. */
    private readonly rows: readonly InsertStatement[] = [],
  ) {
    super(compose, batch);
  }

  /** The INSERT of each table, for several uses of this statement. @internal */
  override writes(uses: SqlValue[][]): BoundWrite[] {
    if (this.rows.length === 0) return super.writes(uses);
    let start = 0;
    return this.rows.flatMap((row) => {
      const [from, until] = [start, start + row.parameterCount];
      start = until;
      return row.writes(uses.map((parameters) => parameters.slice(from, until)));
    });
  }
}

/** A write that `writeStatement` or `insertIgnoreStatement` declared, for `Database.execute`. */
export class WriteStatement<Parameters extends SqlValue[] = SqlValue[]> extends Statement<Parameters> {
  declare protected readonly changes: true;
}

/** Several writes with their values. `Database.execute` resolves to the number of rows that the first one matched. */
class WritesTogether extends WriteStatement<[]> {
  constructor(private readonly bound: BoundWrite[]) {
    super((dialect) => bound.map(({ statement }) => statement.text(dialect)).join('; '));
  }

  override writes(): BoundWrite[] {
    return this.bound;
  }
}

/** Extra column in a batched SELECT: the index of the statement that the row belongs to. */
export const STATEMENT_INDEX = 'statement_index';

const textOf = (part: SqlText, dialect: SqlDialect): string => (typeof part === 'string' ? part : part(dialect));

/**
 * Declares a SELECT: `selectStatement<[id: string], { name: string }>('SELECT name FROM ticket WHERE id = ?')`.
 *
 * Uses of one statement in one event-loop tick are sent as one, if the statement is given in parts (not on SQLite):
 * `{ columns: ['name'], from: 'ticket WHERE id = ?', batch: true }`.
 */
export function selectStatement<Parameters extends SqlValue[], Row>(
  source: SqlText | BatchedSelect,
): SelectStatement<Parameters, Row> {
  if (typeof source !== 'object') return new SelectStatement((dialect) => textOf(source, dialect));
  assertCanBeBatched(source);
  const { columns, from } = source;
  return new SelectStatement((dialect, size) => {
    const names = columns.map((column) => textOf(column, dialect)).join(', ');
    const rest = from === undefined ? names : `${names} FROM ${textOf(from, dialect)}`;
    if (size === 1) return `SELECT ${rest}`;
    const indexed = (_: unknown, index: number) => `(SELECT ${index} AS ${STATEMENT_INDEX}, ${rest})`;
    return Array.from({ length: size }, indexed).join(' UNION ALL ');
  }, true);
}

/**
 * Declares an INSERT of one row. Rows of one event-loop tick are inserted together if the statement has `batch: true`.
 */
export function insertStatement<Entity extends object, const Names extends readonly ColumnOf<Entity>[]>({
  into,
  columns,
  batch = false,
}: {
  into: new () => Entity;
  columns: Names;
  batch?: boolean;
}): InsertStatement<ColumnValues<Entity, Names>> {
  return new InsertStatement((_dialect, size) => `INSERT ${rowsInto(into, columns, size)}`, batch, columns.length);
}

/**
 * Declares the INSERT of a row of each of several tables, as one transaction. Its parameters are those of the rows one
 * after another. Uses of one event-loop tick are inserted together, because a transaction costs more than its rows.
 */
export function insertsTogether<const Rows extends readonly InsertStatement[]>(
  ...rows: Rows
): InsertStatement<ParametersOf<Rows>> {
  const compose = (dialect: SqlDialect) => rows.map((row) => row.text(dialect)).join('; ');
  return new InsertStatement(compose, true, 0, rows);
}

/** The parameters of several statements one after another. */
type ParametersOf<Rows extends readonly unknown[]> = Rows extends readonly [InsertStatement<infer First>, ...infer Rest]
  ? [...First, ...ParametersOf<Rest>]
  : [];

/** Declares an INSERT that skips a row whose key exists. `Database.execute` resolves to 1 for a new row, else to 0. */
export function insertIgnoreStatement<Entity extends object, const Names extends readonly ColumnOf<Entity>[]>({
  into,
  columns,
}: {
  into: new () => Entity;
  columns: Names;
}): WriteStatement<ColumnValues<Entity, Names>> {
  return new WriteStatement(({ insertIgnore }) => `${insertIgnore} ${rowsInto(into, columns, 1)}`);
}

/** Declares an INSERT, UPDATE or DELETE: `writeStatement<[id: string]>('DELETE FROM ticket WHERE id = ?')`. */
export function writeStatement<Parameters extends SqlValue[]>(sql: SqlText): WriteStatement<Parameters> {
  return new WriteStatement((dialect) => textOf(sql, dialect));
}

function rowsInto(entity: new () => object, columns: readonly string[], size: number): string {
  const table = getMetadataArgsStorage().tables.find(({ target }) => target === entity)?.name;
  if (table === undefined) throw new Error(`${entity.name}: an entity needs @Entity('its_table')`);
  const row = `(${columns.map(() => '?').join(', ')})`;
  return `INTO ${table} (${columns.join(', ')}) VALUES ${Array(size).fill(row).join(', ')}`;
}

/**
 * Several writes as one transaction, which does not wait for other transactions of the process. `Database.execute`
 * resolves to the number of rows that the first one matched.
 */
export function writesTogether(...writes: BoundWrite[]): WriteStatement<[]> {
  return new WritesTogether(writes);
}

export interface BoundWrite {
  statement: Statement;
  parameters: SqlValue[];
  /** The number of rows of an INSERT; 1 if omitted. */
  size?: number;
}

export function bindWrite<Parameters extends SqlValue[]>(
  statement: WriteStatement<Parameters>,
  parameters: NoInfer<Parameters>,
): BoundWrite {
  return { statement, parameters };
}

/** The name of a column, made from that of its property. */
type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : '';

/** The columns of an entity. Their names are those of its properties in snake_case. */
type Columns<Entity> = {
  [Property in keyof Entity & string as Entity[Property] extends (...parameters: never[]) => unknown
    ? never
    : SnakeCase<Property>]: Entity[Property];
};

/** `Database.select` returns times as Date. mysql2 and libsql return booleans in different forms, and JSON as text. */
type SelectedValue<Value> = Value extends boolean
  ? boolean | number
  : Value extends Date | string | number | null
    ? Value
    : string;

/** JSON is written as text. */
type WrittenValue<Value> = Value extends SqlValue ? Value : string;

/** The name of a column of an entity. */
export type ColumnOf<Entity> = keyof Columns<Entity> & string;

/** The values to be written to some columns of an entity, in the order of the columns. */
export type ColumnValues<Entity, Names extends readonly ColumnOf<Entity>[]> = {
  -readonly [Index in keyof Names]: WrittenValue<Columns<Entity>[Names[Index]]>;
};

/** A row of a SELECT of some columns of an entity. */
export type EntityRow<Entity, Names extends ColumnOf<Entity>> = {
  [Name in Names]: SelectedValue<Columns<Entity>[Name]>;
};

/** A row of a SELECT whose condition admits no NULL in these columns. */
export type NotNull<Row> = { [Name in keyof Row]: NonNullable<Row[Name]> };

/** A row of the optional side of a LEFT JOIN. */
export type OrNull<Row> = { [Name in keyof Row]: Row[Name] | null };
