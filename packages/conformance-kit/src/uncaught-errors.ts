import { setImmediate as nextTurn } from 'node:timers/promises';
import { thenRestore } from './replace-method.js';

const EVENTS = ['unhandledRejection', 'uncaughtException'] as const;

/**
 * Does work, and fails if meanwhile a promise was rejected that nothing awaits, or a timer or a listener has thrown.
 *
 * @param subject the grant or the route, for the message
 */
export async function failOnUncaughtErrors<Result>(subject: string, work: () => Promise<Result>): Promise<Result> {
  const uncaught: unknown[] = [];
  const record = (error: unknown) => void uncaught.push(error);
  return thenRestore(
    EVENTS.map((event) => replaceListeners(event, record)),
    async () => {
      const result = await work();
      // node reports a rejection after the callbacks of the turn in which it occurs
      for (let turn = 0; turn < 3; turn++) await nextTurn();
      if (uncaught.length > 0) throw new Error(`${subject}: ${UNCAUGHT}: ${textOf(uncaught[0])}`);
      return result;
    },
  );
}

const UNCAUGHT = 'an error that no code catches; await each promise, or catch its rejection';

const textOf = (error: unknown): string => (error instanceof Error ? `${error.stack}` : String(error));

/** The listeners of vitest report an error without the grant or the route. Returns a function that restores them. */
function replaceListeners(event: (typeof EVENTS)[number], listener: (error: unknown) => void): () => void {
  const before = process.rawListeners(event) as ((...parameters: unknown[]) => void)[];
  process.removeAllListeners(event);
  process.on(event, listener);
  return () => {
    process.off(event, listener);
    for (const each of before) process.on(event, each);
  };
}
