// @ts-check
/**
 * Checks that each migration after those of 2.0.0 only expands the schema (docs/decisions/0015). One that drops,
 * renames or tightens something names the release that stopped using it: `readonly unusedSince = '2.2.0'`. Carries the
 * migrations out on SQLite in memory, and compares the tables before and after each of them.
 *
 * `npm run check:migrations` runs this program with tsx, because the migrations are TypeScript.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import libsql from 'libsql';
import { DataSource } from 'typeorm';

/** @typedef {import('typeorm').MigrationInterface & { unusedSince?: string }} Migration */
/** @typedef {import('typeorm').Table} Table */

/** The timestamps of the migrations of 2.0.0 are lower. */
const FIRST_LATER_TIMESTAMP_MS = 1_796_000_001_000;

/**
 * @param {(new () => Migration)[]} migrations oldest first
 * @param {string} release the release that has these migrations
 * @returns {Promise<string[]>}
 */
export async function findViolations(migrations, release) {
  const options = /** @type {const} */ ({ type: 'better-sqlite3', driver: libsql, database: ':memory:' });
  const dataSource = await new DataSource(options).initialize();
  const runner = dataSource.createQueryRunner();
  const violations = [];
  for (const Migration of migrations) {
    const migration = new Migration();
    const name = migration.name ?? Migration.name;
    const before = await runner.getTables();
    await migration.up(runner);
    if (Number(/\d+$/.exec(name)?.[0]) < FIRST_LATER_TIMESTAMP_MS) continue;
    const found = contractions(before, await runner.getTables());
    const { unusedSince } = migration;
    if (unusedSince !== undefined && !isEarlier(unusedSince, release))
      violations.push(`${name}: unusedSince is not a release before ${release}`);
    else if (unusedSince === undefined) violations.push(...found.map((each) => `${name} ${each}`));
  }
  await dataSource.destroy();
  return violations;
}

/** @param {Table[]} before @param {Table[]} after @returns {string[]} */
function contractions(before, after) {
  return before.flatMap((table) => {
    const changed = after.find(({ name }) => name === table.name);
    if (!changed) return [`drops or renames the table ${table.name}`];
    return [...contractedColumns(table, changed), ...contractedKeys(table, changed)];
  });
}

/** @param {Table} before @param {Table} after @returns {string[]} */
function contractedColumns(before, after) {
  const found = [];
  for (const column of before.columns) {
    const of = `${before.name}.${column.name}`;
    const changed = after.findColumnByName(column.name);
    if (!changed) found.push(`drops or renames the column ${of}`);
    else if (changed.type !== column.type) found.push(`changes the type of ${of}`);
    else if (Number(changed.length || Infinity) < Number(column.length || Infinity)) found.push(`shortens ${of}`);
    else if (column.isNullable && !changed.isNullable) found.push(`makes ${of} NOT NULL`);
    else if (column.default !== undefined && changed.default === undefined) found.push(`drops the default of ${of}`);
  }
  for (const { name, isNullable, default: value } of after.columns)
    if (!before.findColumnByName(name) && !isNullable && value === undefined)
      found.push(`adds ${before.name}.${name}, which is NOT NULL and has no default`);
  return found;
}

/** @param {Table} before @param {Table} after @returns {string[]} */
function contractedKeys(before, after) {
  /** @param {Table} table */
  const keysOf = ({ indices, uniques, primaryColumns, foreignKeys, checks }) => ({
    indices: indices.map(({ columnNames }) => `the index of ${columnNames}`),
    constraints: [
      ...indices.filter(({ isUnique }) => isUnique).map(({ columnNames }) => `unique ${columnNames}`),
      ...uniques.map(({ columnNames }) => `unique ${columnNames}`),
      `the primary key ${primaryColumns.map(({ name }) => name)}`,
      ...foreignKeys.map(({ columnNames }) => `the foreign key ${columnNames}`),
      ...checks.map(({ expression }) => `the check ${expression}`),
    ],
  });
  const [old, now] = [keysOf(before), keysOf(after)];
  return [
    ...old.indices.filter((index) => !now.indices.includes(index)).map((index) => `drops ${index} of ${before.name}`),
    ...now.constraints
      .filter((constraint) => !old.constraints.includes(constraint))
      .map((constraint) => `adds to ${before.name} ${constraint}`),
  ];
}

/** @param {string} one @param {string} other */
function isEarlier(one, other) {
  if (!/^\d+\.\d+\.\d+$/.test(one)) return false;
  return one.localeCompare(other, 'en', { numeric: true }) < 0;
}

if (process.argv[1] === import.meta.filename) {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'));
  const { migrations } = await import('../src/migrations/migrations.js');
  const violations = await findViolations(migrations, version);
  for (const violation of violations) console.error(violation);
  if (migrations.length === 0 || violations.length > 0) process.exitCode = 1;
}
