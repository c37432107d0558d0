import { Injectable } from '@nestjs/common';
import { timeOf } from '../../platform/database/sql-dialect.js';
import type { EndedAudience, EndedKind } from '../ended.entity.js';
import { FeedPages } from './feed-pages.js';
import type { PageRow } from './feed-store.js';

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

/** Positions are times, and no entry is in force for longer than a day and two minutes. */
const MAX_AGE_MS = 2 * 86_400_000;

/** The pages of the revocation feed. */
@Injectable()
export class RevocationPages extends FeedPages<PageRow, PublishedRevocation> {
  protected readRows(after: number, now: number): Promise<PageRow[]> {
    return this.store.readPage(Math.max(after, now - MAX_AGE_MS), new Date(now));
  }

  protected entryOf(row: PageRow): PublishedRevocation {
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
