import { type MigrationInterface, type QueryRunner, Table, TableColumn, TableIndex } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { findViolations } from '../../scripts/check-migrations.js';

const text = (name: string, more: object = {}) => ({ name, type: 'varchar', length: '36', ...more });

/** The tables of 2.0.0 in these tests. */
class First1796000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    const columns = [text('id', { isPrimary: true }), text('name'), text('note', { isNullable: true })];
    const indices = [{ name: 'note', columnNames: ['note'] }];
    await runner.createTable(new Table({ name: 'thing', columns, indices }));
  }
  async down(): Promise<void> {}
}

const violationsOf = (up: (runner: QueryRunner) => Promise<unknown>, unusedSince?: string) => {
  class Later1797000000000 implements MigrationInterface {
    readonly unusedSince = unusedSince;
    async up(runner: QueryRunner): Promise<void> {
      await up(runner);
    }
    async down(): Promise<void> {}
  }
  return findViolations([First1796000000000, Later1797000000000 as never], '1.4.0');
};
const column = (name: string, more: object = {}) => new TableColumn(text(name, more));
const unique = new TableIndex({ columnNames: ['name'], isUnique: true });

describe('a migration after 2.0.0', () => {
  it.each<[string, (runner: QueryRunner) => Promise<unknown>]>([
    [
      'a table',
      (runner) => runner.createTable(new Table({ name: 'more', columns: [text('name')], indices: [unique] })),
    ],
    ['a nullable column', (runner) => runner.addColumn('thing', column('more', { isNullable: true }))],
    ['a column with a default', (runner) => runner.addColumn('thing', column('more', { default: "''" }))],
    ['an index', (runner) => runner.createIndex('thing', new TableIndex({ columnNames: ['name'] }))],
    ['a longer column', (runner) => runner.changeColumn('thing', 'name', column('name', { length: '64' }))],
  ])('may add %s', async (_, up) => {
    expect(await violationsOf(up)).toEqual([]);
  });

  it.each<[string, (runner: QueryRunner) => Promise<unknown>]>([
    ['drops or renames the table thing', (runner) => runner.renameTable('thing', 'other')],
    ['drops or renames the column thing.note', (runner) => runner.dropColumn('thing', 'note')],
    ['drops or renames the column thing.name', (runner) => runner.renameColumn('thing', 'name', 'title')],
    ['shortens thing.name', (runner) => runner.changeColumn('thing', 'name', column('name', { length: '8' }))],
    ['makes thing.note NOT NULL', (runner) => runner.changeColumn('thing', 'note', column('note'))],
    [
      'changes the type of thing.name',
      (runner) => runner.changeColumn('thing', 'name', new TableColumn({ name: 'name', type: 'integer' })),
    ],
    ['adds thing.more, which is NOT NULL and has no default', (runner) => runner.addColumn('thing', column('more'))],
    ['adds to thing unique name', (runner) => runner.createIndex('thing', unique)],
    ['drops the index of note of thing', (runner) => runner.dropIndex('thing', 'note')],
  ])('fails the check if it %s, unless it names the release that stopped using it', async (violation, up) => {
    expect(await violationsOf(up)).toContain(`Later1797000000000 ${violation}`);
    expect(await violationsOf(up, '1.3.9')).toEqual([]);
  });

  it.each(['1.4.0', '1.10.0', 'the last one'])('fails the check if it names the release %s', async (release) => {
    const violations = await violationsOf((runner) => runner.dropColumn('thing', 'note'), release);
    expect(violations).toEqual(['Later1797000000000: unusedSince is not a release before 1.4.0']);
  });
});
