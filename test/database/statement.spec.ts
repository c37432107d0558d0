import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Column, Entity, getMetadataArgsStorage, PrimaryColumn } from 'typeorm';
import { describe, expect, it } from 'vitest';
import type { Database } from '../../src/platform/database/database.js';
import { MYSQL_DIALECT, SQLITE_DIALECT } from '../../src/platform/database/sql-dialect.js';
import {
  type EntityRow,
  insertIgnoreStatement,
  insertStatement,
  type NotNull,
  selectStatement,
  writeStatement,
} from '../../src/platform/database/statement.js';

@Entity('ticket')
class Ticket {
  @PrimaryColumn('varchar', { name: 'client_id' })
  clientId!: string;

  @Column('datetime', { name: 'won_at', nullable: true })
  wonAt!: Date | null;

  @Column('simple-json')
  prizes!: string[];

  @Column('boolean', { name: 'is_drawn' })
  isDrawn!: boolean;
}

describe('a declared statement', () => {
  it('has the text of its dialect', () => {
    const find = selectStatement<[string], { age: number }>({
      columns: ['client_id', ({ millisecondsSince }) => `${millisecondsSince('won_at')} AS age`],
      from: ({ now }) => `ticket WHERE won_at < ${now}`,
      batch: true,
    });
    expect(find.text(MYSQL_DIALECT)).toBe(
      'SELECT client_id, (TIMESTAMPDIFF(MICROSECOND, won_at, CURRENT_TIMESTAMP(3)) DIV 1000) AS age FROM ticket WHERE won_at < CURRENT_TIMESTAMP(3)',
    );
    expect(find.text(SQLITE_DIALECT)).toContain("WHERE won_at < strftime('%Y-%m-%d %H:%M:%f', 'now')");
  });

  it('composes its text once for each dialect and size', () => {
    let composed = 0;
    const remove = writeStatement<[string]>(() => `DELETE FROM ticket WHERE client_id = ? -- ${++composed}`);
    for (let round = 0; round < 3; round++) for (const each of [MYSQL_DIALECT, SQLITE_DIALECT]) remove.text(each);
    expect(composed).toBe(2);
  });

  it('inserts into the table and the columns of an entity', () => {
    const insert = insertStatement({ into: Ticket, columns: ['client_id', 'won_at'], batch: true });
    expect(insert.text(MYSQL_DIALECT, 2)).toBe('INSERT INTO ticket (client_id, won_at) VALUES (?, ?), (?, ?)');
    const insertIgnore = insertIgnoreStatement({ into: Ticket, columns: ['client_id'] });
    expect(insertIgnore.text(MYSQL_DIALECT)).toBe('INSERT IGNORE INTO ticket (client_id) VALUES (?)');
    expect(insertIgnore.text(SQLITE_DIALECT)).toBe('INSERT OR IGNORE INTO ticket (client_id) VALUES (?)');
  });

  it('is rejected if it inserts into a class without a table', () => {
    class Prize {
      name!: string;
    }
    const insert = insertStatement({ into: Prize, columns: ['name'] });
    expect(() => insert.text(MYSQL_DIALECT)).toThrow("Prize: an entity needs @Entity('its_table')");
  });

  it('is checked by the compiler against its entity', () => {
    const insert = insertStatement({ into: Ticket, columns: ['client_id', 'won_at', 'prizes', 'is_drawn'] });
    const find = selectStatement<[clientId: string], EntityRow<Ticket, 'won_at' | 'is_drawn'>>('SELECT …');
    const findWon = selectStatement<[], NotNull<EntityRow<Ticket, 'won_at'>>>('SELECT …');
    const compiled = async (database: Database) => {
      await database.insert(insert, ['site', null, '["a bicycle"]', true]);
      // @ts-expect-error a time is a Date
      await database.insert(insert, ['site', 'today', '["a bicycle"]', true]);
      // @ts-expect-error a value is missing
      await database.insert(insert, ['site', null, '["a bicycle"]']);
      // @ts-expect-error an INSERT has no rows
      await database.select(insert, ['site', null, '["a bicycle"]', true]);
      // @ts-expect-error no such column
      insertStatement({ into: Ticket, columns: ['clientId'] });
      const [row] = await database.select(find, ['site']);
      const values: [Date | null, boolean | number] | undefined = row && [row.won_at, row.is_drawn];
      // @ts-expect-error the column was not selected
      const prizes = row?.prizes;
      const [won] = await database.select(findWon, []);
      const wonAt: Date | undefined = won?.won_at;
      return [values, prizes, wonAt];
    };
    expect(compiled).toBeTypeOf('function');
  });
});

describe('the declaration of a batched SELECT', () => {
  it.each([
    ['DISTINCT client_id', 'ticket'],
    ['*', 'ticket'],
    ['ticket.*', 'ticket'],
    ['client_id', 'ticket UNION SELECT client_id FROM draw'],
    ['client_id', 'ticket WHERE client_id = ? FOR UPDATE'],
    ['client_id', 'ticket WHERE client_id = ? FOR SHARE'],
    ['client_id', 'ticket ORDER BY client_id'],
    ['client_id', 'ticket\nWHERE client_id = ?\nORDER BY client_id'],
  ])('is rejected for SELECT %s FROM %s', (column, from) => {
    expect(() => selectStatement({ columns: [column], from, batch: true })).toThrow('a batched SELECT');
  });

  it.each(['ticket', 'ticket WHERE client_id = ?', 'ticket ORDER BY client_id LIMIT 1', 'ticket WHERE reorder_by = 1'])(
    'is accepted for SELECT client_id FROM %s',
    (from) => {
      expect(() => selectStatement({ columns: ['client_id'], from, batch: true })).not.toThrow();
    },
  );
});

it('every column of an entity is named like its property in snake_case, as the row types expect', async () => {
  const folder = join(import.meta.dirname, '../../dist');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.entity.js'),
  );
  for (const file of files) await import(join(folder, file));
  const { columns } = getMetadataArgsStorage();
  expect(columns.length).toBeGreaterThan(50);
  for (const { propertyName, options } of columns)
    expect(options.name ?? propertyName).toBe(propertyName.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
});
