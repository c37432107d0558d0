import { type EntityManager, In, type ObjectLiteral } from 'typeorm';
import { withRetainedFields } from '../entries/entry.js';
import type { RegistryResource } from '../resources/registry-resource.js';

/** A row to change, with all its new values, the changed columns and the values before. */
export interface ChangedRow {
  row: ObjectLiteral;
  changes: string[];
  current: ObjectLiteral;
  endsTokens: boolean;
}

const MAX_ROWS_PER_STATEMENT = 200;
/** Far below `max_allowed_packet`, which is 16 MB by default in MariaDB. */
const MAX_CHARACTERS_PER_STATEMENT = 1_000_000;

/** Inserts rows, with default values for retained fields that they omit. */
export async function insertRows(manager: EntityManager, resource: RegistryResource, rows: ObjectLiteral[]) {
  const all = rows.map((row) => withRetainedFields(resource, row));
  for (const values of inStatements(all)) {
    await manager.createQueryBuilder().insert().into(resource.entity).values(values).updateEntity(false).execute();
  }
}

/** Updates the changed columns. Rows with the same changed columns share a statement. */
export async function updateRows(manager: EntityManager, resource: RegistryResource, changed: ChangedRow[]) {
  const { entity, fileKey, columnsOnTokenEnd } = resource;
  const { column: key } = fileKey;
  const alike = new Map<string, ChangedRow[]>();
  for (const each of changed) {
    const { row, changes, endsTokens } = each;
    if (endsTokens && columnsOnTokenEnd) {
      // one by one, because another transaction may raise the generation meanwhile
      const columns = Object.fromEntries(changes.map((column) => [column, row[column]]));
      await manager.update(entity, { [key]: row[key] }, { ...columns, ...columnsOnTokenEnd });
      continue;
    }
    const name = changes.join();
    const group = alike.get(name);
    if (group) group.push(each);
    else alike.set(name, [each]);
  }
  const { columns } = manager.connection.getMetadata(entity);
  for (const rows of alike.values()) {
    const names = columns.filter(({ propertyName }) => rows[0]?.changes.includes(propertyName));
    for (const values of inStatements(rows.map(wholeRow))) {
      const insert = manager.createQueryBuilder().insert().into(entity).values(values).updateEntity(false);
      const primaryKey = columns.filter(({ isPrimary }) => isPrimary).map(({ databaseName }) => databaseName);
      // this never inserts: the rows were read under the lock on the registry, so none was deleted since
      await insert
        .orUpdate(
          names.map(({ databaseName }) => databaseName),
          primaryKey,
        )
        .execute();
    }
  }
}

/** Lets the admin API change rows that the file no longer lists. */
export async function releaseRows(manager: EntityManager, resource: RegistryResource, rows: ObjectLiteral[]) {
  const { column } = resource.fileKey;
  for (const some of inStatements(rows)) {
    await manager.update(resource.entity, { [column]: In(some.map((row) => row[column])) }, { ownedByFile: false });
  }
}

function wholeRow({ row, current }: ChangedRow): ObjectLiteral {
  return { ...current, ...Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined)) };
}

/** Splits rows into statements of limited size. */
function* inStatements(rows: ObjectLiteral[]): Generator<ObjectLiteral[]> {
  let some: ObjectLiteral[] = [];
  let characters = 0;
  for (const row of rows) {
    const { length } = JSON.stringify(row);
    if (
      some.length === MAX_ROWS_PER_STATEMENT ||
      (some.length > 0 && characters + length > MAX_CHARACTERS_PER_STATEMENT)
    ) {
      yield some;
      [some, characters] = [[], 0];
    }
    some.push(row);
    characters += length;
  }
  if (some.length > 0) yield some;
}
