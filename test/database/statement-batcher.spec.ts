import { setImmediate as nextTick } from 'node:timers/promises';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import { expect, it, vi } from 'vitest';
import { MYSQL_DIALECT, type SqlValue } from '../../src/platform/database/sql-dialect.js';
import { insertStatement, type Statement, selectStatement } from '../../src/platform/database/statement.js';
import { copyRows, StatementBatcher, splitInserts, splitRows } from '../../src/platform/database/statement-batcher.js';
import { requestContext } from '../../src/platform/request-context/request-context.js';
import { deferred } from '../support/deferred.js';

@Entity('person')
class Person {
  @PrimaryColumn('varchar')
  id!: string;

  @Column('varchar')
  name!: string;
}

const FIND = selectStatement<[id: string], { id: string; name: string }>({
  columns: ['id', 'name'],
  from: 'person WHERE id = ?',
  batch: true,
});
const INSERT = insertStatement({ into: Person, columns: ['id', 'name'], batch: true });

/** A batch as a server gets it. */
const textOf = (statement: Statement, uses: SqlValue[][]) => ({
  sql: statement.text(MYSQL_DIALECT, uses.length),
  parameters: uses.flat(),
});

/** A server of persons that responds to SELECTs by id. Person `c` does not exist, and `bad` gets an error. */
function selects() {
  const sent: { sql: string; parameters: SqlValue[] }[] = [];
  const batcher = new StatementBatcher<unknown[]>({
    mayPad: true,
    split: splitRows,
    copy: copyRows,
    send: async (statement, uses) => {
      const { sql, parameters } = textOf(statement, uses());
      sent.push({ sql, parameters });
      if (parameters.includes('bad')) throw new Error('of this one');
      if (parameters.includes('away')) throw Object.assign(new Error('gone'), { code: 'ECONNRESET' });
      const rows = parameters.map((id, index) => (sql.startsWith('(') ? { statement_index: index, id } : { id }));
      return rows.filter((row) => row.id !== 'c').toReversed();
    },
  });
  const ask = (id: string, statement = FIND) => batcher.send(statement, [id]);
  return { ask, sent };
}

const idsOf = (rows: unknown[]) => (rows as { id: string }[]).map(({ id }) => id);

it('sends a single statement of a tick unchanged', async () => {
  const { ask, sent } = selects();
  expect(await ask('a')).toEqual([{ id: 'a' }]);
  expect(sent).toEqual([{ sql: 'SELECT id, name FROM person WHERE id = ?', parameters: ['a'] }]);
});

it('sends equal SELECTs of one tick as one statement, and returns to each its own rows', async () => {
  const { ask, sent } = selects();
  const results = await Promise.all(['a', 'b', 'c', 'd'].map((id) => ask(id)));
  expect(results).toEqual([[{ id: 'a' }], [{ id: 'b' }], [], [{ id: 'd' }]]);
  expect(sent).toHaveLength(1);
  expect(sent[0]?.sql).toBe(
    [0, 1, 2, 3]
      .map((index) => `(SELECT ${index} AS statement_index, id, name FROM person WHERE id = ?)`)
      .join(' UNION ALL '),
  );
});

it('sends three SELECTs as four with the first one repeated, to limit the number of prepared statements', async () => {
  const { ask, sent } = selects();
  const results = await Promise.all(['a', 'b', 'd'].map((id) => ask(id)));
  expect(results.map(idsOf)).toEqual([['a'], ['b'], ['d']]);
  expect(sent.map(({ parameters }) => parameters)).toEqual([['a', 'b', 'd', 'a']]);
});

it('sends different statements and statements of different ticks separately', async () => {
  const { ask, sent } = selects();
  const other: typeof FIND = selectStatement({ columns: ['id', 'name'], from: 'person WHERE id = ?', batch: true });
  const first = [ask('a'), ask('b', other)];
  await nextTick();
  await Promise.all([...first, ask('d')]);
  expect(sent.map(({ parameters }) => parameters)).toEqual([['a'], ['b'], ['d']]);
});

it('sends forty statements in batches of at most sixteen', async () => {
  const { ask, sent } = selects();
  const ids = Array.from({ length: 40 }, (_, n) => `person ${n}`);
  const results = await Promise.all(ids.map((id) => ask(id)));
  expect(results.map(idsOf)).toEqual(ids.map((id) => [id]));
  expect(sent.map(({ parameters }) => parameters.length)).toEqual([16, 16, 8]);
});

it('sends a SELECT once for uses with equal parameters, and gives each use rows of its own', async () => {
  const { ask, sent } = selects();
  const results = await Promise.all(['a', 'a', 'd', 'd', 'a'].map((id) => ask(id)));
  expect(results.map(idsOf)).toEqual([['a'], ['a'], ['d'], ['d'], ['a']]);
  expect(sent.map(({ parameters }) => parameters)).toEqual([['a', 'd', 'a', 'a']]);
  expect(results[0]?.[0]).not.toBe(results[1]?.[0]);
});

it('compares times by their value', async () => {
  const sent: SqlValue[][] = [];
  const send = async (_: Statement, uses: () => SqlValue[][]) => sent.splice(0, 0, uses().flat());
  const batcher = new StatementBatcher<unknown[]>({
    mayPad: true,
    split: (_, size) => Array<unknown[]>(size).fill([]),
    copy: copyRows,
    send,
  });
  await Promise.all([1, 1, 2].map((time) => batcher.send(FIND, [new Date(time)])));
  expect(sent).toEqual([[new Date(1), new Date(2)]]);
});

it('repeats each statement separately if one statement of a batch fails', async () => {
  const { ask } = selects();
  const results = await Promise.allSettled(['a', 'bad', 'd', 'bad'].map((id) => ask(id)));
  const rejected = { status: 'rejected', reason: new Error('of this one') };
  expect(results).toEqual([
    { status: 'fulfilled', value: [{ id: 'a' }] },
    rejected,
    { status: 'fulfilled', value: [{ id: 'd' }] },
    rejected,
  ]);
});

it('repeats no statement if the database is unavailable', async () => {
  const { ask, sent } = selects();
  const results = await Promise.allSettled(['a', 'away'].map((id) => ask(id)));
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(sent).toHaveLength(1);
});

it('sends equal INSERTs of one tick as INSERTs of several rows, and repeats no row', async () => {
  const sent: [string, SqlValue[]][] = [];
  const batcher = new StatementBatcher<number>({
    mayPad: false,
    split: splitInserts,
    send: async (statement, uses) => {
      const { sql, parameters } = textOf(statement, uses());
      sent.push([sql, parameters]);
      return uses().length;
    },
  });
  const inserted = await Promise.all(['a', 'b', 'c'].map((id) => batcher.send(INSERT, [id, 'A'])));
  expect(inserted).toEqual([1, 1, 1]);
  expect(sent).toEqual([
    ['INSERT INTO person (id, name) VALUES (?, ?), (?, ?)', ['a', 'A', 'b', 'A']],
    ['INSERT INTO person (id, name) VALUES (?, ?)', ['c', 'A']],
  ]);
});

it('rejects the INSERT of a request that gets 503 before the batch is sent, and waits as long as the others may', async () => {
  const connected = deferred();
  const sent: SqlValue[][] = [];
  const waits: number[] = [];
  const batcher = new StatementBatcher<number>({
    mayPad: false,
    split: splitInserts,
    send: async (_statement, uses, waitMs) => {
      waits.push(waitMs);
      await connected.promise;
      sent.push(uses().flat());
      return uses().length;
    },
  });
  const now = vi.spyOn(performance, 'now').mockReturnValue(0);
  const remaining = vi.spyOn(requestContext, 'remainingMs');
  const insert = (id: string, remainingMs: number) => {
    remaining.mockReturnValueOnce(remainingMs);
    return batcher.send(INSERT, [id, 'A']);
  };
  const inserted = Promise.allSettled([insert('short', 100), insert('long', 900)]);
  await nextTick();
  now.mockReturnValue(101);
  connected.resolve();
  const [short, long] = await inserted;
  expect({ sent, waits }).toEqual({ sent: [['long', 'A']], waits: [900] });
  expect(short).toMatchObject({ status: 'rejected', reason: { code: 'DEADLINE_EXCEEDED' } });
  expect(long).toEqual({ status: 'fulfilled', value: 1 });
});

it('repeats each SELECT separately if the rows of a batch have no statement index', async () => {
  const batcher = new StatementBatcher<unknown[]>({
    mayPad: true,
    split: splitRows,
    send: async (_, uses) =>
      uses()
        .flat()
        .map((id) => ({ id })),
  });
  const results = await Promise.all(['a', 'b'].map((id) => batcher.send(FIND, [id])));
  expect(results).toEqual([[{ id: 'a' }], [{ id: 'b' }]]);
});

it.each(['SELECT DISTINCT id, name FROM person WHERE id = ?', 'SELECT * FROM person WHERE id = ? FOR UPDATE'])(
  'sends a statement without a declared batch unchanged, even if it occurs several times in a tick: %s',
  async (sql) => {
    const { ask, sent } = selects();
    const statement: typeof FIND = selectStatement(sql);
    await Promise.all([ask('a', statement), ask('b', statement), ask('d', statement)]);
    expect(sent).toEqual(['a', 'b', 'd'].map((id) => ({ sql, parameters: [id] })));
  },
);
