import type { MigrationInterface, QueryRunner } from 'typeorm';
import { Columns, createTables, dropTables } from '../../../src/public/grant.js';

/** The tickets that have won. */
export class LottoTickets1795300000000 implements MigrationInterface {
  readonly name = 'LottoTickets1795300000000';

  async up(runner: QueryRunner): Promise<void> {
    const columns = new Columns(runner);
    const ticketColumns = [columns.key('client_id', 128), columns.key('ticket', 6), columns.time('won_at')];
    await createTables(runner, [{ name: 'lotto_ticket', columns: ticketColumns }]);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropTables(runner, ['lotto_ticket']);
  }
}
