import type { QueryRunner, TableOptions } from 'typeorm';
import { type Columns, CreateTables, expiryIndex, NULLABLE } from './schema.js';

export class Ended1796000000001 extends CreateTables {
  protected readonly tables = (its: Columns): TableOptions[] => [
    {
      name: 'ended',
      columns: [
        its.key('kind', 16),
        its.key('value', 255),
        its.bigInteger('number', NULLABLE),
        its.text('reason', 32),
        its.time('issued_before'),
        its.time('expires_at'),
        its.bigInteger('position', NULLABLE),
        its.time('published_until', NULLABLE),
        its.text('audience', 16, NULLABLE),
      ],
      indices: [
        ...expiryIndex('ended'),
        { name: 'ended_position', columnNames: ['position'] },
        { name: 'ended_published_until', columnNames: ['published_until'] },
      ],
    },
    {
      name: 'revocation_feed',
      columns: [
        its.integer('id', { isPrimary: true }),
        its.integer('history', { default: 0 }),
        its.bigInteger('position'),
        its.text('publisher', 36),
        its.flag('has_backlog'),
        its.integer('entries', { default: 0 }),
        its.integer('entries_count', { default: 0 }),
      ],
    },
  ];

  override async up(runner: QueryRunner): Promise<void> {
    await super.up(runner);
    if ((await runner.query('SELECT id FROM revocation_feed')).length === 0)
      await runner.query(`INSERT INTO revocation_feed (id, history, position, publisher, has_backlog, entries, entries_count)
        VALUES (1, 0, 0, '', 1, 0, 0)`);
  }
}
