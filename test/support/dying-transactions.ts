import { vi } from 'vitest';
import { Database } from '../../src/platform/database/database.js';
import type { TestService } from './test-service.js';

/** Lets the next transaction of a service fail, before its statements or between them and the commit. */
export function dieInTransaction({ application }: TestService, moment: 'before' | 'after'): void {
  const database = application.get(Database);
  const transaction = database.transaction.bind(database);
  vi.spyOn(database, 'transaction').mockImplementationOnce((work) =>
    transaction(async (manager) => {
      if (moment === 'after') await work(manager);
      throw new Error('the process dies');
    }),
  );
}
