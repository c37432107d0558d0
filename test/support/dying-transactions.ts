import { ServiceUnavailableException } from '@nestjs/common';
import type { EntityManager, QueryRunner } from 'typeorm';
import { vi } from 'vitest';
import { Database } from '../../src/platform/database/database.js';
import { DeadlineExceededError } from '../../src/platform/database/database-errors.js';
import type { LossyProxy } from './lossy-proxy.js';
import type { TestService } from './test-service.js';

export const OUTAGE = new DeadlineExceededError(1_000);
/** After a transaction: the response to its COMMIT is lost. */
export const LOST_RESPONSE = new ServiceUnavailableException('the database is unavailable', { cause: OUTAGE });
export const DEATH = new Error('the process dies');

type Act = (sql: string, send: () => Promise<unknown>) => Promise<unknown>;

/** Calls `act` in place of each statement of the transactions of a service. `send` sends the statement. */
export function interceptTransactions({ application }: TestService, act: Act, only: 'next' | 'all' = 'all'): void {
  const database = application.get(Database);
  const transaction = database.transaction.bind(database);
  const spy = vi.spyOn(database, 'transaction');
  const run: Database['transaction'] = (work, ...more) =>
    transaction((manager) => work(intercepted(manager, act)), ...more);
  if (only === 'next') spy.mockImplementationOnce(run as never);
  else spy.mockImplementation(run as never);
}

/** Calls `act` right before or after the next transaction of a service. */
export function atNextTransaction(
  { application }: TestService,
  moment: 'before' | 'after',
  act: () => Promise<unknown>,
): void {
  const database = application.get(Database);
  const transaction = database.transaction.bind(database);
  vi.spyOn(database, 'transaction').mockImplementationOnce(async (work) => {
    if (moment === 'before') await act();
    const result = await transaction(work);
    if (moment === 'after') await act();
    return result as never;
  });
}

/** A manager that calls `act` in place of each statement. */
export function intercepted(manager: EntityManager, act: Act): EntityManager {
  const runner = manager.queryRunner as QueryRunner;
  const query = (...all: Parameters<QueryRunner['query']>) => act(all[0], () => runner.query(...all));
  return manager.dataSource.createEntityManager(Object.create(runner, { query: { value: query } }));
}

/**
 * Calls `attempt` with an error before and after each statement of its first transaction, and once without an error.
 * The transaction is rolled back, as if the process had died there.
 *
 * @param attempt gets whether the error has occurred
 * @returns the number of errors
 */
export async function failAtEachStatement(
  service: TestService,
  error: Error,
  attempt: (hasFailed: () => boolean) => Promise<void>,
): Promise<number> {
  for (let errors = 0; ; errors++) {
    const statement = Math.floor(errors / 2) + 1;
    let sent = 0;
    const act: Act = async (_, send) => {
      if (++sent !== statement) return send();
      if (errors % 2 === 1) await send();
      throw error;
    };
    interceptTransactions(service, act, 'next');
    await attempt(() => sent >= statement);
    vi.restoreAllMocks();
    if (sent < statement) return errors;
  }
}

/**
 * Calls `attempt` while the response to each statement of its first transaction is lost.
 *
 * @param first the number of the first statement; 0 is the COMMIT
 * @returns the number of the last statement
 */
export async function loseEachResponse(
  service: TestService,
  proxy: LossyProxy,
  attempt: () => Promise<void>,
): Promise<number> {
  for (let lost = 0; ; lost++) {
    const lostBefore = proxy.lost;
    let sent = 0;
    const act: Act = (sql, send) => {
      if (lost === 0) proxy.dropResponses('COMMIT', [1]);
      else if (++sent === lost) proxy.dropResponses(sql.slice(0, 30), [1]);
      return send();
    };
    interceptTransactions(service, act, 'next');
    await attempt();
    vi.restoreAllMocks();
    if (proxy.lost === lostBefore) return lost - 1;
  }
}
