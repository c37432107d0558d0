import { setTimeout as sleep } from 'node:timers/promises';
import { Database } from 'customer-authorization-service/grant';
import type { TestService } from './test-service.js';

/** The methods of `Database` that send one statement. `executeIdempotent` calls `execute`. */
const METHODS = ['select', 'insert', 'execute'] as const;
/** Long enough that the requests of a race send their next statements. */
const PAUSE_MS = 20;

/**
 * Does work while each request pauses after each of its statements, so that the statements of concurrent requests
 * alternate. Without the pauses SQLite could execute all statements of one request before those of the next.
 */
export async function withInterleavedStatements<Result>(
  services: TestService[],
  work: () => Promise<Result>,
): Promise<Result> {
  const databases = services.map(({ application }) => application.get(Database));
  for (const database of databases)
    for (const name of METHODS) {
      const send = database[name].bind(database) as (...parameters: unknown[]) => Promise<unknown>;
      const sendAndPause = async (...parameters: unknown[]) => {
        const result = await send(...parameters);
        await sleep(PAUSE_MS);
        return result;
      };
      Object.assign(database, { [name]: sendAndPause });
    }
  try {
    return await work();
  } finally {
    for (const database of databases) for (const name of METHODS) Reflect.deleteProperty(database, name);
  }
}
