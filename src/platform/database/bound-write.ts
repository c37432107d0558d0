import type { SqlValue } from './sql-value.js';
import type { WriteStatement } from './statement.js';

/** A write with its parameters, for `Database.executeTogether`. */
export interface BoundWrite {
  statement: WriteStatement;
  parameters: SqlValue[];
}

/** Binds a write to its parameters. */
export function bindWrite<Parameters extends SqlValue[]>(
  statement: WriteStatement<Parameters>,
  parameters: NoInfer<Parameters>,
): BoundWrite {
  return { statement, parameters };
}
