// @ts-check
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { markdownTable, saveFigures } from './figures.js';
import { plot } from './plot.js';

const SAVED = join(import.meta.dirname, '../docs/performance.json');
const PLOT = join(import.meta.dirname, '../docs/performance.svg');

/**
 * @typedef {import('./measure.js').Measured} Measured
 * @typedef {object} MeasuredRoute
 * @property {string} name
 * @property {Measured} floor
 * @property {Measured} service
 * @property {{ lowest: number, highest: number }} [spread] of the ratios of the rounds
 * @typedef {object} Run
 * @property {string} description the command, the machine and the versions
 * @property {MeasuredRoute[]} routes
 * @property {({ name: string } & Measured)[]} peers
 * @property {number} start milliseconds from the start of the process to its first response
 * @property {{ atRest: number, underLoad: number }} memory megabytes
 */

/** @param {Run} run @param {{ save?: boolean | undefined, json?: string | undefined }} options */
export function report(run, { save, json }) {
  /** @type {Run | undefined} */
  const saved = existsSync(SAVED) ? JSON.parse(readFileSync(SAVED, 'utf8')) : undefined;
  const rows = run.routes.map((route) => {
    const before = saved?.routes.find(({ name }) => name === route.name);
    return [route.name, { ...rowOf(route), 'saved ratio': before && ratioOf([before]) }];
  });
  console.table(Object.fromEntries(rows));
  if (run.peers.length > 0) console.table(peerRows(run));
  const sentences = [run.description, ...transferSentence(run), processSentence(run)];
  for (const sentence of sentences) console.log(sentence);
  const text = `${JSON.stringify(run, undefined, 2)}\n`;
  if (json) writeFileSync(json, text);
  if (!save) return;
  writeFileSync(SAVED, text);
  writeFileSync(PLOT, plot(run));
  const [description = '', ...results] = sentences;
  const table = markdownTable(Object.fromEntries(run.routes.map((route) => [route.name, rowOf(route)])));
  saveFigures('comparison', [description, table, ...results]);
  if (run.peers.length > 0) saveFigures('peers', [markdownTable(peerRows(run))]);
}

/** @param {MeasuredRoute} route */
function rowOf(route) {
  const { floor, service, spread } = route;
  return {
    'requests/s': Math.round(service.rate),
    'CPU µs': Math.round(service.cpu),
    'floor CPU µs': Math.round(floor.cpu),
    ratio: ratioOf([route]),
    'lowest, highest': spread && `${spread.lowest.toFixed(2)}, ${spread.highest.toFixed(2)}`,
    'database µs': Math.round(service.databaseCpu),
    'statements, floor’s': `${service.statements.toFixed(1)}, ${floor.statements.toFixed(1)}`,
    'p50 ms': Number(service.p50.toFixed(1)),
    'p99 ms': Number(service.p99.toFixed(1)),
    'response bytes': Math.round(service.bytes),
  };
}

/** The processor time of the floor divided by that of the service. @param {MeasuredRoute[]} routes */
function ratioOf(routes) {
  const sum = (/** @type {'floor' | 'service'} */ what) => routes.reduce((total, each) => total + each[what].cpu, 0);
  return Number((sum('floor') / sum('service')).toFixed(2));
}

/** @param {Run} run */
function transferSentence({ routes }) {
  const both = routes.filter(({ name }) => name === 'transfer: create' || name === 'transfer: exchange');
  return both.length === 2 ? [`Creating a transfer and its exchange together have the ratio ${ratioOf(both)}.`] : [];
}

/** @param {Run} run */
function processSentence({ start, memory: { atRest, underLoad } }) {
  return (
    `The time from the start of the process to its first response is ${Math.round(start)} ms. The process has ` +
    `${Math.round(atRest)} MB at rest and ${Math.round(underLoad)} MB after the whole load.`
  );
}

/** @param {Run} run */
function peerRows({ peers }) {
  const rows = peers.map(({ name, cpu, rate }) => [
    name,
    { 'requests/s': Math.round(rate), 'CPU µs': Math.round(cpu) },
  ]);
  return Object.fromEntries(rows);
}
