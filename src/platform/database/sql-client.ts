/** A value that a column of this service can hold. */
export type SqlValue = string | number | boolean | Date | null;

/** One way to send a statement to one kind of database. Parameters stand as `?`. */
export interface SqlClient {
  /** What makes `INSERT … INTO` skip a row whose key exists: `IGNORE` or `OR IGNORE`. */
  readonly ignore: string;

  /** A DELETE of at most so many rows, in an order. */
  deleteInOrder(table: string, where: string, order: string, limit: number): string;

  select(sql: string, parameters: SqlValue[]): Promise<unknown[]>;

  /** Resolves to the number of rows that the statement matched. */
  change(sql: string, parameters: SqlValue[]): Promise<number>;
}
