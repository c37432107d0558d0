/** A value that a column of this service can hold. */
export type SqlValue = string | number | boolean | Date | null;

/** How busy a pool of connections is. */
export interface PoolUsage {
  inUse: number;
  idle: number;
  limit: number;
  /** Statements that wait for a connection. */
  waiting: number;
  /** Statements refused since the start, since too many waited already. */
  refused: number;
}

/** One way to send a statement to one kind of database. Parameters stand as `?`. */
export interface SqlClient {
  /** What makes `INSERT … INTO` skip a row whose key exists: `IGNORE` or `OR IGNORE`. */
  readonly ignore: string;

  /** The present time of the database, with milliseconds. */
  readonly now: string;

  /** Whole milliseconds from a time in a column to the present time of the database. */
  millisecondsSince(column: string): string;

  /** A DELETE of at most so many rows, in an order. */
  deleteInOrder(table: string, where: string, order: string, limit: number): string;

  select(sql: string, parameters: SqlValue[]): Promise<unknown[]>;

  /** Sends an INSERT of one row, `… VALUES (?, …)`. */
  insert(sql: string, parameters: SqlValue[]): Promise<void>;

  /** Resolves to the number of rows that the statement matched. */
  change(sql: string, parameters: SqlValue[]): Promise<number>;

  /** Of a client that has a pool. */
  usage?(): PoolUsage;
}
