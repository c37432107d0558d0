import mysql from 'mysql2';
import { expect, it } from 'vitest';
import { ExecutionContextHost, poolState } from '../../src/platform/private-members.js';

it('the context of a guard of Nest has the request', () => {
  const request = {};
  expect(new ExecutionContextHost([request]).switchToHttp().getRequest()).toBe(request);
});

it('the state of a pool of mysql2 says how many connections are in use, and how many callers wait for one', () => {
  const pool = mysql.createPool({ host: '127.0.0.1', port: 1, connectionLimit: 1 });
  expect(poolState(pool)).toEqual({ limit: 1, inUse: 0, idle: 0, waiting: 0 });
  pool.getConnection(() => undefined);
  pool.getConnection(() => undefined);
  expect(poolState(pool)).toEqual({ limit: 1, inUse: 1, idle: 0, waiting: 1 });
  pool.end(() => undefined);
});
