// @ts-check
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { plot } from './plot.js';

const SAVED = join(import.meta.dirname, '../docs/performance.json');
const PLOT = join(import.meta.dirname, '../docs/performance.svg');

/**
 * @typedef {import('./measure.js').Measured} Measured
 * @typedef {object} Run
 * @property {{ name: string, floor: Measured, service: Measured }[]} routes
 * @property {({ name: string } & Measured)[]} peers
 * @property {number} start milliseconds from the start of the process to its first response
 * @property {{ atRest: number, underLoad: number }} memory megabytes
 */

/** @param {Run} run @param {{ save?: boolean | undefined, json?: string | undefined }} options */
export function report(run, { save, json }) {
  /** @type {Run | undefined} */
  const saved = existsSync(SAVED) ? JSON.parse(readFileSync(SAVED, 'utf8')) : undefined;
  const rows = run.routes.map(({ name, floor, service }) => {
    const before = saved?.routes.find((route) => route.name === name);
    const ratio = floor.cpu / service.cpu;
    const row = {
      'requests/s': Math.round(service.rate),
      'CPU µs': Math.round(service.cpu),
      'floor CPU µs': Math.round(floor.cpu),
      ratio: Number(ratio.toFixed(2)),
      'saved ratio': before && Number((before.floor.cpu / before.service.cpu).toFixed(2)),
      'database µs': Math.round(service.databaseCpu),
      statements: Number(service.statements.toFixed(1)),
      'floor statements': Number(floor.statements.toFixed(1)),
      'p50 ms': Number(service.p50.toFixed(1)),
      'p99 ms': Number(service.p99.toFixed(1)),
      'response bytes': Math.round(service.bytes),
    };
    return [name, row];
  });
  console.table(Object.fromEntries(rows));
  const ofPeers = run.peers.map(({ name, cpu, rate }) => [
    name,
    { 'requests/s': Math.round(rate), 'CPU µs': Math.round(cpu) },
  ]);
  if (ofPeers.length > 0) console.table(Object.fromEntries(ofPeers));
  const { atRest, underLoad } = run.memory;
  console.log(
    `start to the first response ${Math.round(run.start)} ms; memory ${Math.round(atRest)} MB at rest, ${Math.round(underLoad)} MB after the whole load`,
  );
  const text = `${JSON.stringify(run, undefined, 2)}\n`;
  if (json) writeFileSync(json, text);
  if (!save) return;
  writeFileSync(SAVED, text);
  writeFileSync(PLOT, plot(run));
}
