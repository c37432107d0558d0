import type { Database } from '../platform/database/database.js';
import { type EntityRow, selectStatement } from '../platform/database/statement.js';
import type { RegistryChange, RegistryRevision } from './registry-change.entity.js';

/** The keys of changed entries by the `list` of their resource. */
export type ChangedKeys = Map<string, Set<string>>;

/** With more changes, reading the whole registry is not slower. Such a revision has no rows in the log. */
export const MAX_CHANGES = 20_000;

/**
 * The purge deletes expired rows in portions, so that a revision may have only some of its rows. Rows that expire soon
 * are ignored too, because the purge may run meanwhile, on a host whose clock is ahead.
 */
const EXPIRY_MARGIN_MS = 60_000;

const READ_REVISION = selectStatement<[], EntityRow<RegistryRevision, 'revision'>>({
  columns: ['revision'],
  from: 'registry_revision',
  batch: true,
});

const READ_CHANGES = selectStatement<
  [validAt: Date, after: number, until: number],
  EntityRow<RegistryChange, 'revision' | 'resource' | 'entry_key'>
>(
  `SELECT revision, resource, entry_key FROM registry_change
    WHERE expires_at > ? AND revision > ? AND revision <= ? LIMIT ${MAX_CHANGES + 1}`,
);

/** The present revision of the registry in the database. */
export async function readRevision(database: Database): Promise<number> {
  const [row] = await database.select(READ_REVISION, []);
  return row?.revision ?? 0;
}

/**
 * The entries that changed after one revision and up to another. `undefined` if the log does not have all of them: it has no rows of old
 * revisions, of revisions with very many changes, and of revisions that an operator raised by SQL.
 */
export async function changesSince(
  database: Database,
  after: number,
  until: number,
  now: number,
): Promise<ChangedKeys | undefined> {
  const rows = await database.select(READ_CHANGES, [new Date(now + EXPIRY_MARGIN_MS), after, until]);
  const revisions = new Set(rows.map(({ revision }) => revision));
  if (rows.length > MAX_CHANGES || revisions.size < until - after) return undefined;
  const changed: ChangedKeys = new Map();
  for (const { resource, entry_key } of rows)
    changed.set(resource, (changed.get(resource) ?? new Set()).add(entry_key));
  return changed;
}
