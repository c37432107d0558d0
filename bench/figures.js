// @ts-check
/** The figures of the benchmarks in docs/performance.md. `--save` of a benchmark replaces those of its section. */
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';
import { join } from 'node:path';

const DOCUMENT = join(import.meta.dirname, '../docs/performance.md');
const LINE_WIDTH_CHARACTERS = 120;
/** If other programs use the processors, the figures measure these programs too. */
const RUNNING_PROCESS_COUNT = 1;
const loadBefore = loadavg()[0] ?? 0;

/** @typedef {Record<string, Record<string, string | number | undefined>>} Table rows by their names */

/** Whether the program was started with `--save`. */
export const isSaving = () => process.argv.includes('--save');

if (isSaving() && loadBefore > RUNNING_PROCESS_COUNT) {
  console.error(
    `--save needs a load average of at most ${RUNNING_PROCESS_COUNT}, and it is ${loadBefore.toFixed(1)}. Wait until the machine is idle.`,
  );
  process.exit(1);
}

/**
 * One sentence with the command, the machine and the versions of the run.
 *
 * @param {string} command @param {import('mysql2/promise').Connection} connection
 */
export async function describeRun(command, connection) {
  const [rows] = await connection.query('SELECT VERSION() AS version');
  const [{ version } = { version: '' }] = /** @type {{ version: string }[]} */ (rows);
  return (
    `Run of \`${command}\` on ${new Date().toISOString().slice(0, 10)}: ${availableParallelism()} processors ` +
    `(${cpus()[0]?.model.trim()}), Node ${process.versions.node}, MariaDB ${version.split('-')[0]}, ` +
    `load average ${loadBefore.toFixed(1)} before the run.`
  );
}

/** @param {Table} rows */
export function markdownTable(rows) {
  const columns = [...new Set(Object.values(rows).flatMap((row) => Object.keys(row)))];
  const line = (/** @type {(string | number | undefined)[]} */ cells) => `| ${cells.map(cellText).join(' | ')} |`;
  const body = Object.entries(rows).map(([name, row]) => line([name, ...columns.map((column) => row[column])]));
  return [line(['', ...columns]), `|${'---|'.repeat(columns.length + 1)}`, ...body]
    .join('\n')
    .replaceAll('|  |', '| |');
}

/**
 * Replaces the figures between the two comments of a section.
 *
 * @param {string} section @param {string[]} parts
 */
export function saveFigures(section, parts) {
  const begin = `<!-- figures of the ${section} -->\n`;
  const end = `<!-- end of the ${section} -->`;
  const text = readFileSync(DOCUMENT, 'utf8');
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
  if (from < begin.length || to < from) throw new Error(`${DOCUMENT}: no ${begin}`);
  const figures = parts.map((part) => (part.startsWith('|') ? part : wrapped(part)));
  writeFileSync(DOCUMENT, `${text.slice(0, from)}\n${figures.join('\n\n')}\n\n${text.slice(to)}`);
}

/** @param {string | number | undefined} value */
function cellText(value) {
  return typeof value === 'number' ? value.toLocaleString('en-US') : (value ?? '');
}

/** @param {string} text */
function wrapped(text) {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = `${lines.at(-1)} ${word}`.trimStart();
    if (line.length <= LINE_WIDTH_CHARACTERS) lines[lines.length - 1] = line;
    else lines.push(word);
  }
  return lines.join('\n');
}
