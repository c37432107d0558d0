import { statSync } from 'node:fs';
import { join } from 'node:path';
import libsql from 'libsql';
import { DataSource, type EntityManager } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { SqliteClient } from '../../src/platform/database/sqlite-client.js';
import { prepareFile, type SqliteConnection, SqliteStatements } from '../../src/platform/database/sqlite-statements.js';
import { deferred } from '../support/deferred.js';
import { temporaryFolder } from '../support/project-files.js';

const database = join(temporaryFolder('sqlite-writer'), 'test.sqlite');
let dataSource: DataSource;
let writer: SqliteClient;
/** The connection of another process. */
const other = new libsql(database);

beforeAll(async () => {
  other.exec('CREATE TABLE parent (id INTEGER PRIMARY KEY)');
  other.exec('CREATE TABLE child (parent_id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)');
  const options = { type: 'better-sqlite3', driver: libsql, database, prepareDatabase: prepareFile } as const;
  dataSource = await new DataSource(options).initialize();
  writer = await SqliteClient.open(dataSource);
});
afterAll(async () => {
  await writer.onApplicationShutdown();
  await dataSource.destroy();
  other.close();
});

const idsOf = () => (other.prepare('SELECT id FROM parent ORDER BY id').all() as { id: number }[]).map(({ id }) => id);
const insert = (id: number) => (statements: SqliteStatements) =>
  statements.write('INSERT INTO parent VALUES (?)', [id]);
const insertWith = (manager: EntityManager, id: number) => manager.query('INSERT INTO parent VALUES (?)', [id]);

const connectionOf = (of: SqliteClient): SqliteConnection => Reflect.get(of, 'connection');

describe('the writer of a SQLite file', () => {
  it('runs no write inside of the transaction of another caller', async () => {
    const failed = writer.transaction(async (manager) => {
      await insertWith(manager, 1);
      await new Promise((resolve) => setTimeout(resolve, 20));
      throw new Error('the work failed');
    }, 5_000);
    const written = writer.run(insert(2), 5_000);
    await expect(failed).rejects.toThrow('the work failed');
    await written;
    expect(idsOf()).toEqual([2]);
  });

  it('replaces the connection if COMMIT fails, and holds no lock afterwards', async () => {
    const orphan = (statements: SqliteStatements) => statements.write('INSERT INTO child VALUES (?)', [77]);
    await expect(writer.run(orphan, 5_000)).rejects.toThrow(/FOREIGN KEY/);
    other.exec('INSERT INTO parent VALUES (3)');
    await writer.run(insert(4), 5_000);
    expect(idsOf()).toEqual([2, 3, 4]);
  });

  it.each(['BEGIN', 'ROLLBACK'])('replaces the connection if %s fails', async (failing) => {
    if (failing === 'BEGIN') connectionOf(writer).exec('BEGIN'); // without a lock, so that BEGIN IMMEDIATE fails
    const write = () => {
      connectionOf(writer).exec('ROLLBACK'); // so that the writer's own ROLLBACK fails
      throw new Error('the work failed');
    };
    const before = connectionOf(writer);
    await expect(writer.run(write, 5_000)).rejects.toThrow();
    expect(connectionOf(writer)).not.toBe(before);
    other.exec('DELETE FROM parent WHERE id = 4');
    await writer.run(insert(4), 5_000);
    expect(idsOf()).toEqual([2, 3, 4]);
  });

  it('knows that writes wait behind a transaction that hangs, and drops those that it gave up', async () => {
    const work = deferred();
    const hanging = writer.transaction(() => work.promise, 5_000);
    const now = performance.now();
    await expect(writer.run(insert(9), 50)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    expect(Reflect.get(writer, 'failingSince')).toBeDefined();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(now); // as if the timer had fired too early
    work.resolve();
    await hanging;
    await writer.run(insert(5), 5_000);
    clock.mockRestore();
    expect(idsOf(), 'a write whose caller was told that nothing was written').toEqual([2, 3, 4, 5]);
    other.exec('DELETE FROM parent WHERE id = 5');
  });

  it('gives up in time while another process holds the lock, also for the writes that wait behind', async () => {
    other.exec('BEGIN IMMEDIATE');
    const writes = await Promise.allSettled([9, 10, 11].map((id) => writer.run(insert(id), 100)));
    const late = { status: 'rejected', reason: { code: 'DEADLINE_EXCEEDED' } };
    expect(writes).toMatchObject([late, late, late]);
    expect(await writer.secondsWithoutWrite()).toBeGreaterThan(0);
    other.exec('COMMIT');
    const before = statSync(`${database}-wal`).size;
    expect(await writer.secondsWithoutWrite()).toBe(0);
    expect(statSync(`${database}-wal`).size, 'a page was written, which a full disk would not admit').toBeGreaterThan(
      before,
    );
    expect(idsOf()).toEqual([2, 3, 4]);
  });
});

it('a writer that is closed rejects writes, and can be closed after its connection was lost', async () => {
  const closing = await SqliteClient.open(dataSource);
  await closing.onApplicationShutdown();
  await expect(closing.run(insert(12), 5_000)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
  await closing.onApplicationShutdown();
});

it('the prepared statements of a connection to a SQLite file are at most 500', () => {
  const prepared: string[] = [];
  const connection = {
    prepare(sql: string) {
      prepared.push(sql);
      return other.prepare(sql);
    },
  } as unknown as SqliteConnection;
  const statements = new SqliteStatements(connection);
  for (let index = 0; index < 600; index++) {
    statements.select(`SELECT ${index} AS value`, []);
    statements.select('SELECT 0 AS value', []);
  }
  const before = prepared.length;
  statements.select('SELECT 599 AS value', []);
  statements.select('SELECT 0 AS value', []);
  expect(prepared.length - before, 'statements that were used recently').toBe(0);
  statements.select('SELECT 90 AS value', []);
  expect(prepared.length - before, 'a statement that was used long ago').toBe(1);
});
