import module from 'node:module';
import { getMetadataArgsStorage } from 'typeorm';
import { afterAll, expect, vi } from 'vitest';
import { lowerPasswordHashCost } from './cheap-password-hashes.js';
import './migrated-schema.js';
import { recordStatements, writeStatements } from './statement-recorder.js';

/** Functions that tests replace, and that the next test file of the process uses. */
const REPLACEABLE = [
  [globalThis, 'fetch'],
  [globalThis, 'setTimeout'],
  [Date, 'now'],
  [Math, 'random'],
  [console, 'log'],
  [console, 'error'],
  [process.stdout, 'write'],
  [process.stderr, 'write'],
] as const;

/** Returns a function that names what has changed in the process since, and was not restored. */
function leftoversSince(): () => string[] {
  const functions = REPLACEABLE.map(([target, name]) => Reflect.get(target, name));
  const listeners = listenersOfProcess();
  const folder = process.cwd();
  return () => [
    ...(vi.isFakeTimers() ? ['fake timers'] : []),
    ...REPLACEABLE.filter(([target, name], i) => Reflect.get(target, name) !== functions[i]).map(([, name]) => name),
    ...[...listenersOfProcess()]
      .filter(([name, count]) => count > (listeners.get(name) ?? 0))
      .map(([name]) => String(name)),
    ...(process.cwd() === folder ? [] : ['process.cwd()']),
    ...duplicateTables().map((name) => `a second entity class of the table ${name}, because a module was loaded twice`),
  ];
}

function listenersOfProcess(): Map<string | symbol, number> {
  return new Map(process.eventNames().map((name) => [name, process.listenerCount(name)]));
}

/** Tables of two entity classes: the metadata of one would apply to the rows of the other. */
function duplicateTables(): string[] {
  const names = getMetadataArgsStorage().tables.flatMap(({ name }) => name ?? []);
  return names.filter((name, i) => names.indexOf(name) !== i);
}

// The test files of a process share its modules, so no file may change what the next one sees.
const environment = { ...process.env };
lowerPasswordHashCost();
recordStatements();
const leftovers = leftoversSince();

afterAll(() => {
  vi.restoreAllMocks();
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name];
  Object.assign(process.env, environment);
  writeStatements(expect.getState().testPath ?? '');
  module.flushCompileCache?.(); // vitest kills its processes before Node writes the cache
  if (process.env.TEST_SHARES_MODULES)
    expect(leftovers(), 'what this file leaves for the next file of the process').toEqual([]);
});
