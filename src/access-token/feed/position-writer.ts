import { Injectable } from '@nestjs/common';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { bindWrite } from '../../platform/database/statement.js';
import { RecordedValues } from '../recorded-values.js';
import { MAX_ROWS_PER_POSITION, publishRows, RAISE_POSITION, type WaitingRow } from './publication-statements.js';

/** What one transaction has published. */
interface Publication {
  position: number;
  rowCount: number;
  /** Whether more revocations may wait. */
  hasBacklog: boolean;
}

/** Raises the highest position of the feed and writes it to revocations, in one transaction (protocol §7.6). */
@Injectable()
export class PositionWriter {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly recorded: RecordedValues,
  ) {}

  /**
   * @param publisher the id of this process
   * @param highest the highest position that this process has read
   * @returns `undefined` if another process has published since
   */
  async publish(publisher: string, highest: number, found: WaitingRow[]): Promise<Publication | undefined> {
    const rows = found.slice(0, MAX_ROWS_PER_POSITION);
    const { customer, other } = await this.recorded.entrySeconds();
    const now = this.clock.now();
    const after = (seconds: number) => new Date(now + seconds * 1000);
    const position = Math.max(highest + 1, now);
    const hasBacklog = rows.length >= MAX_ROWS_PER_POSITION;
    const [isMine] = await this.database.executeTogether([
      bindWrite(RAISE_POSITION, [position, publisher, hasBacklog, rows.length, highest]),
      ...publishRows({ position, publisher, customersUntil: after(customer), othersUntil: after(other) }, rows),
    ]);
    return isMine === 1 ? { position, rowCount: rows.length, hasBacklog } : undefined;
  }
}
