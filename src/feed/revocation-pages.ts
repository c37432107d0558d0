import { Injectable } from '@nestjs/common';
import { timeOf } from '../platform/database/sql-dialect.js';
import { type EntityRow, selectStatement } from '../platform/database/statement.js';
import type { Ended, EndedAudience, EndedKind } from './ended.entity.js';
import { FeedPages } from './feed-pages.js';
import { ROWS_PER_PAGE } from './feed-store.js';

/** An entry of the feed as consumers get it (protocol §7.6), and whose tokens it can end. Times are in ISO 8601. */
export interface PublishedRevocation {
  kind: EndedKind;
  value: string;
  audience: EndedAudience;
  epoch?: number;
  generation?: number;
  issued_before?: string;
  expires_at: string;
}

const COLUMNS = [
  'position',
  'kind',
  'value',
  'issued_before',
  'expires_at',
  'published_until',
  'number',
  'audience',
] as const;

type RevocationRow = EntityRow<Ended, (typeof COLUMNS)[number]>;

const READ_PAGE = selectStatement<[after: number, now: Date, stillNow: Date], RevocationRow>({
  columns: COLUMNS,
  from: `ended WHERE position > ? AND (published_until > ? OR published_until IS NULL) AND expires_at > ?
    ORDER BY position, kind, value LIMIT ${ROWS_PER_PAGE}`,
  batch: true,
});

/** Positions are times, and no entry is in force for longer than a day and two minutes. */
const MAX_AGE_MS = 2 * 86_400_000;

/** The pages of the revocation feed. */
@Injectable()
export class RevocationPages extends FeedPages<RevocationRow, PublishedRevocation> {
  protected readRows(after: number, now: number): Promise<RevocationRow[]> {
    const time = new Date(now);
    return this.database.select(READ_PAGE, [Math.max(after, now - MAX_AGE_MS), time, time]);
  }

  protected entryOf(row: RevocationRow): PublishedRevocation {
    const { kind, value, audience } = row;
    const entry = { kind, value, audience, expires_at: isoOf(row.published_until ?? row.expires_at) };
    const number = Number(row.number);
    if (kind === 'session') return { ...entry, epoch: number };
    if (kind === 'subject') return { ...entry, generation: number };
    return { ...entry, issued_before: isoOf(row.issued_before) };
  }
}

function isoOf(time: Date | string): string {
  return new Date(timeOf(time)).toISOString();
}
