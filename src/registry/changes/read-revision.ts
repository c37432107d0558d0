import type { Database } from '../../platform/database/database.js';
import type { EntityRow } from '../../platform/database/entity-row.js';
import { selectStatement } from '../../platform/database/statement.js';
import type { RegistryRevision } from '../registry-revision.entity.js';

const READ_REVISION = selectStatement<[], EntityRow<RegistryRevision, 'revision'>>({
  columns: ['revision'],
  from: 'registry_revision',
  batch: true,
});

/** The present revision of the registry in the database. */
export async function readRevision(database: Database): Promise<number> {
  const [row] = await database.select(READ_REVISION, []);
  return row?.revision ?? 0;
}
