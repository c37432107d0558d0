import { setImmediate as endOfTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { SqlValue } from '../../src/platform/database/sql-client.js';
import {
  StatementsOfOneTurn,
  unionOfInserts,
  unionOfSelects,
} from '../../src/platform/database/statements-of-one-turn.js';

const OF_ID = 'SELECT id, name FROM customer WHERE id = ?';
const INSERT = 'INSERT INTO customer (id, name) VALUES (?, ?)';

/** A server of customers that answers SELECTs by id; `c` is not there, and whoever asks for `bad` gets an error. */
function selects() {
  const sent: { sql: string; parameters: SqlValue[] }[] = [];
  const statements = new StatementsOfOneTurn<unknown[]>({
    ...unionOfSelects,
    send: async (sql, parameters) => {
      sent.push({ sql, parameters });
      if (parameters.includes('bad')) throw new Error('of this one');
      if (parameters.includes('away')) throw Object.assign(new Error('gone'), { code: 'ECONNRESET' });
      const rows = parameters.map((id, nth) => (sql.startsWith('(') ? { nth_of_turn: nth, id } : { id }));
      return rows.filter((row) => row.id !== 'c').toReversed();
    },
  });
  const ask = (id: string, sql = OF_ID) => statements.send(sql, [id]);
  return { ask, sent };
}

const idsOf = (rows: unknown[]) => (rows as { id: string }[]).map(({ id }) => id);

it('a statement that is alone in its turn goes as it is', async () => {
  const { ask, sent } = selects();
  expect(await ask('a')).toEqual([{ id: 'a' }]);
  expect(sent).toEqual([{ sql: OF_ID, parameters: ['a'] }]);
});

it('statements of one text and turn go as one, and each gets its own rows', async () => {
  const { ask, sent } = selects();
  const answers = await Promise.all(['a', 'b', 'c', 'd'].map((id) => ask(id)));
  expect(answers.map(idsOf)).toEqual([['a'], ['b'], [], ['d']]);
  expect(sent).toHaveLength(1);
  expect(sent[0]?.sql).toBe(
    [0, 1, 2, 3].map((n) => `(SELECT ${n} AS nth_of_turn, id, name FROM customer WHERE id = ?)`).join(' UNION ALL '),
  );
});

it('three SELECTs go as four, the first of them twice: fewer sizes are fewer prepared statements', async () => {
  const { ask, sent } = selects();
  const answers = await Promise.all(['a', 'b', 'd'].map((id) => ask(id)));
  expect(answers.map(idsOf)).toEqual([['a'], ['b'], ['d']]);
  expect(sent.map(({ parameters }) => parameters)).toEqual([['a', 'b', 'd', 'a']]);
});

it('statements of another text, or of the next turn, go by themselves', async () => {
  const { ask, sent } = selects();
  const first = [ask('a'), ask('b', `${OF_ID} LIMIT 1`)];
  await endOfTurn();
  await Promise.all([...first, ask('d')]);
  expect(sent.map(({ parameters }) => parameters)).toEqual([['a'], ['b'], ['d']]);
});

it('of forty, sixteen go as one', async () => {
  const { ask, sent } = selects();
  const ids = Array.from({ length: 40 }, (_, n) => `customer ${n}`);
  const answers = await Promise.all(ids.map((id) => ask(id)));
  expect(answers.map(idsOf)).toEqual(ids.map((id) => [id]));
  expect(sent.map(({ parameters }) => parameters.length)).toEqual([16, 16, 8]);
});

it('the fault of one is no fault of the others, which are asked for again', async () => {
  const { ask } = selects();
  const answers = await Promise.allSettled(['a', 'bad', 'd'].map((id) => ask(id)));
  expect(answers).toEqual([
    { status: 'fulfilled', value: [{ id: 'a' }] },
    { status: 'rejected', reason: new Error('of this one') },
    { status: 'fulfilled', value: [{ id: 'd' }] },
  ]);
});

it('where the database is away, nothing is asked for again', async () => {
  const { ask, sent } = selects();
  const answers = await Promise.allSettled(['a', 'away'].map((id) => ask(id)));
  expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(sent).toHaveLength(1);
});

it('INSERTs of one turn are one INSERT of several rows, and none of them goes twice', async () => {
  const sent: [string, SqlValue[]][] = [];
  const statements = new StatementsOfOneTurn<number>({
    ...unionOfInserts,
    send: async (sql, parameters) => {
      sent.push([sql, parameters]);
      return parameters.length / 2;
    },
  });
  const changed = await Promise.all(['a', 'b', 'c'].map((id) => statements.send(INSERT, [id, 'A'])));
  expect(changed).toEqual([1, 1, 1]);
  expect(sent).toEqual([
    [`${INSERT}, (?, ?)`, ['a', 'A', 'b', 'A']],
    [INSERT, ['c', 'A']],
  ]);
});

it('rows are handed over as they would be alone', async () => {
  const { ask } = selects();
  expect(await Promise.all([ask('a'), ask('b')])).toEqual([[{ id: 'a' }], [{ id: 'b' }]]);
});

it('where the rows do not say whose they are, each is asked for alone', async () => {
  const statements = new StatementsOfOneTurn<unknown[]>({
    ...unionOfSelects,
    send: async (_sql, parameters) => parameters.map((id) => ({ id })),
  });
  const answers = await Promise.all(['a', 'b'].map((id) => statements.send(OF_ID, [id])));
  expect(answers).toEqual([[{ id: 'a' }], [{ id: 'b' }]]);
});

it.each([
  [OF_ID, true],
  ['\n  SELECT 1 FROM customer WHERE id = ? LIMIT 1', true],
  ['SELECT id FROM customer WHERE id > ? ORDER BY id LIMIT 5', true],
  ['SELECT id FROM customer WHERE id > ? ORDER BY id', false],
  ['SELECT\n  id FROM customer WHERE id = ?', false],
  ['select id FROM customer WHERE id = ?', false],
  ['/* a */ SELECT id FROM customer', false],
  ['SELECT * FROM customer WHERE id = ?', false],
  ['SELECT c.* FROM customer c WHERE id = ?', false],
  ['SELECT DISTINCT id FROM customer', false],
  ['SELECT id FROM customer WHERE id = ? UNION ALL SELECT ?', false],
  ['SELECT id FROM customer WHERE id = ? FOR UPDATE', false],
])('%j goes together with others of its turn: %j', async (sql, may) => {
  const { ask, sent } = selects();
  await Promise.all([ask('a', sql), ask('b', sql)]);
  expect(sent.length === 1).toBe(may);
});
