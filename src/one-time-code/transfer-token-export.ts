import { Injectable } from '@nestjs/common';
import { type CustomerDataParticipant, CustomerDataParticipants } from '../identity/customer-data-participants.js';
import { type ExportPage, exportedTable, exportPage } from '../identity/export-page.js';
import { Database } from '../platform/database/database.js';
import { withIsoTimes } from '../platform/database/sql-dialect.js';
import type { EntityRow } from '../platform/database/statement.js';
import type { OneTimeCode } from './one-time-code.entity.js';

/** Without the challenge of the code. */
const EXPORTED_TABLE = exportedTable<EntityRow<OneTimeCode, 'hash' | 'expires_at' | 'consumed_at'>>({
  name: 'one_time_code',
  find: `SELECT hash, kind, client_id, subject, organization_id, made_with, expires_at, consumed_at, consumed_by,
      consumed_network FROM one_time_code WHERE kind = 'transfer' AND subject = ? ORDER BY hash`,
  shown: ({ hash: _, ...row }) => withIsoTimes(row, ['expires_at', 'consumed_at']),
});

/** Exports the transfer tokens of a customer. An erasure ends them by the generation, and they are purged as they expire. */
@Injectable()
export class TransferTokenExport implements CustomerDataParticipant {
  constructor(
    private readonly database: Database,
    participants: CustomerDataParticipants,
  ) {
    participants.add(this);
  }

  readonly ownRows = [];

  exportRows(entityId: string, after?: string): Promise<ExportPage> {
    return exportPage(this.database, [EXPORTED_TABLE], entityId, after);
  }

  async onErase(): Promise<void> {}

  async mustRetain(): Promise<string[]> {
    return [];
  }

  async linkedIds(): Promise<string[]> {
    return [];
  }
}
