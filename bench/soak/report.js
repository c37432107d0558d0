// @ts-check
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawSoak } from './draw.js';

const DOCS = join(import.meta.dirname, '../../docs');
const FIGURES = /(?<=<!-- figures of the soak -->\n)(?:.|\n)*(?=<!-- end of the figures -->)/;

/**
 * @typedef {object} Soak
 * @property {number} durationMs
 * @property {import('./pods.js').Pod[]} pods
 * @property {import('./records.js').Records} records
 * @property {import('./events.js').Event[]} events
 * @property {import('./records.js').Cause[]} causes
 * @property {import('./caller.js').Caller} caller
 *
 * @typedef {Record<string, string | number>[]} Table
 */

/**
 * Prints the figures, and saves them if wanted.
 *
 * @param {Soak} soak @param {{ save?: boolean | undefined }} options
 * @returns {boolean} whether no response is wrong and each error response has an explanation
 */
export function report(soak, { save }) {
  const { wrong } = soak.records;
  const tables = [eventRows(soak), causeRows(soak), operationRows(soak), processRows(soak)];
  for (const rows of tables) console.table(rows);
  const sentence = summary(soak);
  console.log(sentence);
  for (const each of wrong.slice(0, 20)) console.error(`wrong: ${each}`);
  if (save) {
    const path = join(DOCS, 'performance.md');
    const figures = [wrapped(sentence), '![Memory and event loop of each process](soak.svg)', ...tables.map(markdown)];
    writeFileSync(
      path,
      readFileSync(path, 'utf8').replace(FIGURES, () => `\n${figures.join('\n\n')}\n\n`),
    );
    writeFileSync(join(DOCS, 'soak.svg'), drawSoak(soak));
  }
  return wrong.length === 0 && unexplained(soak) === 0;
}

/** @param {Soak} soak */
function summary({ durationMs, records, causes, caller, pods }) {
  const sum = (/** @type {'requests' | 'expected'} */ what) =>
    [...records.operations.values()].reduce((total, figures) => total + figures[what], 0);
  const explained = causes.filter(({ explanation }) => explanation && explanation !== 'deliberate');
  const tokens = [...caller.tokensByKey.values()];
  return (
    `Run of ${(durationMs / 60_000).toFixed(1)} minutes on ${new Date().toISOString().slice(0, 10)}: ${number(sum('requests'))} requests, ` +
    `${pods.length} processes in turn. ${number(sum('expected'))} requests got the error that they asked for. ` +
    `${number(total(explained))} got 503 in an outage of the database. ` +
    `${number(unexplained({ causes }))} error responses or lost requests have no explanation. ` +
    `${number(records.wrong.length)} responses were wrong. ` +
    `${number(tokens.reduce((all, count) => all + count, 0))} tokens of ${tokens.length} signing keys were verified.`
  );
}

/** @param {Pick<Soak, 'causes'>} soak */
function unexplained({ causes }) {
  return total(causes.filter(({ explanation }) => !explanation));
}

/** @param {{ count: number }[]} counted */
function total(counted) {
  return counted.reduce((sum, { count }) => sum + count, 0);
}

/** @param {Soak} soak @returns {Table} */
function eventRows({ events, records, durationMs }) {
  return events.map(({ name, from, to }, index) => {
    const { count, last } = records.unavailable(from, events[index + 1]?.from ?? durationMs);
    return {
      event: name,
      'begins after s': Math.round(from / 1000),
      'takes s': Number(((to - from) / 1000).toFixed(1)),
      '503 responses': count,
      'last 503 after s': count === 0 ? '' : Number(((last - from) / 1000).toFixed(1)),
    };
  });
}

/** @param {Soak} soak @returns {Table} */
function causeRows({ causes }) {
  const sorted = causes.toSorted((a, b) => b.count - a.count);
  return sorted.map(({ count, route, status, error, reason, explanation }) => {
    return { count, route, status, error, reason, explanation: explanation || 'NONE' };
  });
}

/** @param {Soak} soak @returns {Table} */
function operationRows({ records }) {
  return [...records.operations].sort().map(([operation, { requests, succeeded, expected, durations }]) => {
    const sorted = durations.toSorted((a, b) => a - b);
    const quantile = (/** @type {number} */ part) => Number((sorted[Math.floor(part * sorted.length)] ?? 0).toFixed(1));
    return {
      operation,
      requests,
      succeeded,
      'wanted errors': expected,
      'p50 ms': quantile(0.5),
      'p99 ms': quantile(0.99),
    };
  });
}

/** @param {Soak} soak @returns {Table} */
function processRows({ pods }) {
  return pods.map(({ name, samples }) => {
    const median = (/** @type {import('./pods.js').Sample[]} */ of) =>
      Math.round(of.map(({ rssMb }) => rssMb).sort((a, b) => a - b)[Math.floor(of.length / 2)] ?? 0);
    const most = (/** @type {'rssMb' | 'heapMb' | 'lagMs'} */ what) =>
      Math.round(Math.max(...samples.map((sample) => sample[what])));
    return {
      process: name,
      seconds: samples.length,
      'RSS MB, median of the first minute': median(samples.slice(0, 60)),
      'of the last minute': median(samples.slice(-60)),
      'most RSS MB': most('rssMb'),
      'most heap MB': most('heapMb'),
      'longest lag ms': most('lagMs'),
    };
  });
}

/** @param {Table} rows */
function markdown(rows) {
  const names = Object.keys(rows[0] ?? {});
  const line = (/** @type {(string | number)[]} */ cells) => `| ${cells.join(' | ')} |`;
  const cells = (/** @type {Table[number]} */ row) =>
    names.map((name) =>
      String(row[name] ?? '')
        .replaceAll('|', '\\|')
        .replaceAll('<', '\\<'),
    );
  return [line(names), `|${names.map(() => '---').join('|')}|`, ...rows.map((row) => line(cells(row)))].join('\n');
}

/** Breaks a text into lines of at most 120 characters. @param {string} text */
function wrapped(text) {
  return text.replace(/(.{1,120})( |$)/g, '$1\n').trimEnd();
}

/** @param {number} value */
function number(value) {
  return value.toLocaleString('en');
}
