import type { SqlValue } from './sql-dialect.js';

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
