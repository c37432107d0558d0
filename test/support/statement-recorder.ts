import { appendFileSync } from 'node:fs';
import { SQLITE_DIALECT, type SqlDialect } from '../../src/platform/database/sql-dialect.js';
import { Statement } from '../../src/platform/database/statement.js';

/** A declared statement that the service sent in a test. */
interface RecordedStatement {
  database: string;
  /** The text on SQLite, so that the texts of both databases are equal. */
  sql: string;
  testFile: string;
}

/** The file in which the processes of a run record the statements. Without it, nothing is recorded. */
const { TEST_STATEMENTS_FILE, TEST_DATABASE } = process.env;

let isRecording = false;
const unwritten: string[] = [];
const recorded = new Set<string>();
/** Texts in the dialect of the database that are recorded already. */
const knownTexts = new Set<string>();

/** Records the declared statements that the service sends from now on, in all files of this process. */
export function recordStatements(): void {
  if (!TEST_STATEMENTS_FILE || isRecording) return;
  isRecording = true;
  const { text } = Statement.prototype;
  Statement.prototype.text = function (this: Statement, dialect: SqlDialect, size?: number): string {
    const sql = text.call(this, dialect, size);
    if (!knownTexts.has(sql)) {
      knownTexts.add(sql);
      // several writes together are recorded one by one, because which of them come together depends on the moment
      for (const single of text.call(this, SQLITE_DIALECT).split('; ')) record(single);
    }
    return sql;
  };
}

/** Appends the statements that the tests of a file sent first. */
export function writeStatements(testFile: string): void {
  if (!TEST_STATEMENTS_FILE) return;
  const records = unwritten
    .splice(0)
    .map((sql): RecordedStatement => ({ database: `${TEST_DATABASE}`, sql, testFile }));
  const lines = records.map((record) => JSON.stringify(record));
  if (lines.length > 0) appendFileSync(TEST_STATEMENTS_FILE, `${lines.join('\n')}\n`);
}

function record(text: string): void {
  const sql = normalized(text);
  if (recorded.has(sql)) return;
  recorded.add(sql);
  unwritten.push(sql);
}

/** Quotes, numbers, and the number of values in a list differ between databases and calls. */
function normalized(sql: string): string {
  return sql
    .replace(/[`"]/g, '')
    .replace(/\s+/g, ' ')
    .replace(/(?<![\w.])-?\d+/g, '0')
    .replace(/\?(, ?\?)+/g, '?…');
}
