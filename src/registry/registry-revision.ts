import { setImmediate as nextTick } from 'node:timers/promises';
import type { Database } from '../platform/database/database.js';
import { type EntityRow, selectStatement } from '../platform/database/statement.js';
import type { RegistryChange, RegistryRevision } from './registry-change.entity.js';

/** By the `list` of their resource. */
export type ChangedKeys = Map<string, Set<string>>;

/** With more changes, reading the whole registry is not slower. Such a revision has no rows in the log. */
export const MAX_CHANGES = 20_000;
const ROWS_PER_PAGE = 500;

/** The purge may delete some rows of a revision meanwhile, on a host whose clock is ahead. */
const EXPIRY_MARGIN_MS = 60_000;

type Cursor = [revision: number, resource: string, entryKey: string];

const READ_REVISION = selectStatement<[], EntityRow<RegistryRevision, 'revision'>>({
  columns: ['revision'],
  from: 'registry_revision',
  batch: true,
});

const READ_CHANGES = selectStatement<
  [validAt: Date, from: number, until: number, ...Cursor],
  EntityRow<RegistryChange, 'revision' | 'resource' | 'entry_key'>
>(
  `SELECT revision, resource, entry_key FROM registry_change
    WHERE expires_at > ? AND revision BETWEEN ? AND ? AND (revision, resource, entry_key) > (?, ?, ?)
    ORDER BY revision, resource, entry_key LIMIT ${ROWS_PER_PAGE}`,
);

export async function readRevision(database: Database): Promise<number> {
  const [row] = await database.select(READ_REVISION, []);
  return row?.revision ?? 0;
}

/** `undefined` if the log lacks a revision: an old one, one with very many changes, or one that was raised with SQL. */
export async function changesSince(
  database: Database,
  after: number,
  until: number,
  now: number,
): Promise<ChangedKeys | undefined> {
  const validAt = new Date(now + EXPIRY_MARGIN_MS);
  const changed: ChangedKeys = new Map();
  const revisions = new Set<number>();
  let count = 0;
  for (let cursor: Cursor = [after + 1, '', '']; ; await nextTick()) {
    const rows = await database.select(READ_CHANGES, [validAt, cursor[0], until, ...cursor]);
    for (const { revision, resource, entry_key } of rows) {
      revisions.add(revision);
      changed.set(resource, (changed.get(resource) ?? new Set()).add(entry_key));
      cursor = [revision, resource, entry_key];
    }
    count += rows.length;
    if (count > MAX_CHANGES) return undefined;
    if (rows.length < ROWS_PER_PAGE) return revisions.size === until - after ? changed : undefined;
  }
}
