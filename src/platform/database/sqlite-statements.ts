import { SQLITE_LOCK } from './retry-policy.js';
import { type SqlValue, timeOf } from './sql-dialect.js';

/** The driver is synchronous: a statement fails at a lock, and its caller repeats it. Reads need no lock (WAL). */
export async function prepareFile(connection: SqliteConnection): Promise<void> {
  connection.pragma('busy_timeout = 0');
  await SQLITE_LOCK.run(async () => void connection.pragma('journal_mode = WAL'));
}

/** What libsql has of the interface of better-sqlite3. */
export interface SqliteConnection {
  prepare(sql: string): {
    all(...parameters: unknown[]): unknown[];
    run(...parameters: unknown[]): { changes: number };
    columns(): { name: string; type: string | null }[];
  };
  exec(sql: string): void;
  pragma(text: string): unknown;
}

/** SQLite keeps a prepared statement in memory until it is closed. The least recently used one is dropped. */
const MAX_PREPARED_STATEMENTS = 500;

type PreparedStatement = ReturnType<SqliteConnection['prepare']>;

export class SqliteStatements {
  private readonly prepared = new Map<string, PreparedStatement>();
  private readonly timeColumns = new WeakMap<PreparedStatement, string[]>();

  constructor(private readonly connection: SqliteConnection) {}

  select(sql: string, parameters: SqlValue[]): unknown[] {
    const statement = this.prepare(sql);
    const rows = statement.all(...parameters.map(asStored)) as Record<string, unknown>[];
    for (const column of this.timeColumnsOf(statement)) for (const row of rows) row[column] = asTime(row[column]);
    return rows;
  }

  write(sql: string, parameters: SqlValue[]): number {
    return this.prepare(sql).run(...parameters.map(asStored)).changes;
  }

  /** SQLite stores times as text. `MAX(won_at) AS last_won_at` has no type there, so its name decides. */
  private timeColumnsOf(statement: PreparedStatement): string[] {
    const known = this.timeColumns.get(statement);
    if (known) return known;
    const isTime = ({ name, type }: { name: string; type: string | null }) =>
      type === null ? name.endsWith('_at') : type.startsWith('datetime');
    const times = statement.columns().filter(isTime);
    const names = times.map(({ name }) => name);
    this.timeColumns.set(statement, names);
    return names;
  }

  private prepare(sql: string): PreparedStatement {
    const statement = this.prepared.get(sql) ?? this.connection.prepare(sql);
    this.prepared.delete(sql); // a Map keeps the order of insertion, so the first statement is the least recently used
    this.prepared.set(sql, statement);
    if (this.prepared.size > MAX_PREPARED_STATEMENTS) {
      const [leastRecentlyUsed] = this.prepared.keys();
      this.prepared.delete(leastRecentlyUsed as string);
    }
    return statement;
  }
}

/** SQLite has neither dates nor booleans. TypeORM stores them in these forms. */
export function asStored(value: SqlValue): string | number | null {
  if (value instanceof Date) return value.toISOString().replace('T', ' ').slice(0, -1);
  return typeof value === 'boolean' ? Number(value) : value;
}

const asTime = (value: unknown) => (typeof value === 'string' ? new Date(timeOf(value)) : value);
