import { setImmediate as nextTick } from 'node:timers/promises';
import type { Database } from '../../platform/database/database.js';
import type { EntityRow } from '../../platform/database/entity-row.js';
import { selectStatement } from '../../platform/database/statement.js';
import type { RegistryChange } from './registry-change.entity.js';

/** The revisions after one and up to another. */
export interface RevisionRange {
  after: number;
  until: number;
}

/** The keys of changed entries by the `list` of their resource. */
export type ChangedKeys = Map<string, Set<string>>;

/** With more changes, reading the whole registry is not slower. */
const MAX_CHANGES = 20_000;
const ROWS_PER_PAGE = 500;

/** Sorts after the names of all resources and after all keys, which have ASCII characters only. */
const LAST_KEY = '\u{10ffff}';

/**
 * The purge deletes expired rows in portions, so that a revision may have only some of its rows. Rows that expire soon
 * are ignored too, because the purge may run meanwhile, on a host whose clock is ahead.
 */
const EXPIRY_MARGIN_MS = 60_000;

type Cursor = [revision: number, resource: string, entryKey: string];

const READ_PAGE = selectStatement<
  [
    validAt: Date,
    until: number,
    after: number,
    equal: number,
    resource: string,
    sameResource: string,
    entryKey: string,
  ],
  EntityRow<RegistryChange, 'revision' | 'resource' | 'entry_key'>
>(
  `SELECT revision, resource, entry_key FROM registry_change WHERE expires_at > ? AND revision <= ? AND (revision > ? OR
    (revision = ? AND (resource > ? OR (resource = ? AND entry_key > ?)))) ORDER BY revision, resource, entry_key LIMIT ${ROWS_PER_PAGE}`,
);

const COUNT_REVISIONS = selectStatement<[validAt: Date, after: number, until: number], { revisions: number }>(
  `SELECT COUNT(DISTINCT revision) AS revisions FROM registry_change
    WHERE expires_at > ? AND revision > ? AND revision <= ?`,
);

/**
 * The entries that changed in these revisions. `undefined` if the log does not have all of them: it has no rows of old
 * revisions, of revisions with very many changes, and of revisions that an operator raised by SQL.
 */
export async function changesSince(
  database: Database,
  { after, until }: RevisionRange,
  now: number,
): Promise<ChangedKeys | undefined> {
  const changed: ChangedKeys = new Map();
  const revisions = new Set<number>();
  let count = 0;
  for (let cursor: Cursor = [after, LAST_KEY, LAST_KEY]; ; ) {
    const [revision, resource, entryKey] = cursor;
    const parameters = [validAt(now), until, revision, revision, resource, resource, entryKey] as const;
    const rows = await database.select(READ_PAGE, [...parameters]);
    for (const row of rows) {
      revisions.add(row.revision);
      const keys = changed.get(row.resource) ?? new Set();
      changed.set(row.resource, keys.add(row.entry_key));
      cursor = [row.revision, row.resource, row.entry_key];
    }
    count += rows.length;
    if (count > MAX_CHANGES) return undefined;
    if (rows.length < ROWS_PER_PAGE) break;
    await nextTick();
  }
  return revisions.size === until - after ? changed : undefined;
}

/** Whether the log has every change of these revisions. */
export async function isLogComplete(
  database: Database,
  { after, until }: RevisionRange,
  now: number,
): Promise<boolean> {
  const [row] = await database.select(COUNT_REVISIONS, [validAt(now), after, until]);
  return row?.revisions === until - after;
}

function validAt(now: number): Date {
  return new Date(now + EXPIRY_MARGIN_MS);
}
