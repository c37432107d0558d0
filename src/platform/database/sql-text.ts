import type { SqlDialect } from './sql-dialect.js';

/** SQL with a `?` for each parameter, written out or made for the dialect of the database. */
export type SqlText = string | ((dialect: SqlDialect) => string);
