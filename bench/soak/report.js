// @ts-check
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isSaving, markdownTable, saveFigures } from '../figures.js';
import { drawSoak } from './draw.js';

const DRAWING = join(import.meta.dirname, '../../docs/soak.svg');

/**
 * @typedef {object} Soak
 * @property {number} durationMs
 * @property {import('./pods.js').Pod[]} pods
 * @property {import('./records.js').Records} records
 * @property {import('./events.js').Event[]} events
 * @property {import('./records.js').Cause[]} causes
 * @property {import('./caller.js').Caller} caller
 */

/**
 * Prints the figures, and with `--save` saves them.
 *
 * @param {Soak} soak
 * @returns {boolean} whether no response is wrong and each error response has an explanation
 */
export function report(soak) {
  const { wrong } = soak.records;
  const [events, processes] = [eventRows(soak), processRows(soak)];
  for (const rows of [events, causeRows(soak), operationRows(soak), processes]) console.table(rows);
  const sentence = summary(soak);
  console.log(sentence);
  for (const each of wrong.slice(0, 20)) console.error(`wrong: ${each}`);
  if (isSaving()) {
    const drawing = '![Memory and event loop of each process](soak.svg)';
    saveFigures('soak', [sentence, drawing, markdownTable(events), markdownTable(processes)]);
    writeFileSync(DRAWING, drawSoak(soak));
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

/** @param {Soak} soak */
function eventRows({ events, records, durationMs }) {
  const rows = events.map(({ name, from, to }, index) => {
    const { count, last } = records.unavailable(from, events[index + 1]?.from ?? durationMs);
    const row = {
      'takes s': Number(((to - from) / 1000).toFixed(1)),
      '503 responses': count,
      'last 503 after s': count === 0 ? undefined : Number(((last - from) / 1000).toFixed(1)),
    };
    return [`${name}, after ${Math.round(from / 1000)} s`, row];
  });
  return Object.fromEntries(rows);
}

/** @param {Soak} soak */
function causeRows({ causes }) {
  const sorted = causes.toSorted((a, b) => b.count - a.count);
  return sorted.map(({ count, route, status, error, reason, explanation }) => {
    return { count, route, status, error, reason, explanation: explanation || 'NONE' };
  });
}

/** @param {Soak} soak */
function operationRows({ records }) {
  const rows = [...records.operations].sort().map(([operation, { requests, succeeded, expected, durations }]) => {
    const sorted = durations.toSorted((a, b) => a - b);
    const quantile = (/** @type {number} */ part) => Number((sorted[Math.floor(part * sorted.length)] ?? 0).toFixed(1));
    return [
      operation,
      { requests, succeeded, 'wanted errors': expected, 'p50 ms': quantile(0.5), 'p99 ms': quantile(0.99) },
    ];
  });
  return Object.fromEntries(rows);
}

/** @param {Soak} soak */
function processRows({ pods }) {
  const rows = pods.map(({ name, samples }) => {
    const median = (/** @type {import('./pods.js').Sample[]} */ of) =>
      Math.round(of.map(({ rssMb }) => rssMb).sort((a, b) => a - b)[Math.floor(of.length / 2)] ?? 0);
    const most = (/** @type {'rssMb' | 'heapMb' | 'lagMs'} */ what) =>
      Math.round(Math.max(...samples.map((sample) => sample[what])));
    const row = {
      seconds: samples.length,
      'RSS MB, median of the first minute': median(samples.slice(0, 60)),
      'of the last minute': median(samples.slice(-60)),
      'most RSS MB': most('rssMb'),
      'most heap MB': most('heapMb'),
      'longest lag ms': most('lagMs'),
    };
    return [name, row];
  });
  return Object.fromEntries(rows);
}

/** @param {number} value */
function number(value) {
  return value.toLocaleString('en');
}
