import { afterAll, expect, vi } from 'vitest';
import { lowerPasswordHashCost } from './cheap-password-hashes.js';
import { leftoversSince } from './leftovers.js';
import { recordStatements, writeStatements } from './statement-recorder.js';

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
  if (process.env.TEST_SHARES_MODULES)
    expect(leftovers(), 'what this file leaves for the next file of the process').toEqual([]);
});
