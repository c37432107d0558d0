import { AsyncLocalStorage } from 'node:async_hooks';
import { passport } from '@customer-authorization/service/testing-host';

/** The registry of passport's strategies of the service that runs. */
const registries = new AsyncLocalStorage<object>();

/**
 * Starts a service with strategies of its own. Passport has one registry of strategies per process, in which the
 * service that started last would replace the strategy of the others. Node handles the requests of a port in the
 * asynchronous context in which the port was opened.
 */
export function asService<Result>(start: () => Promise<Result>): Promise<Result> {
  return registries.run({}, start);
}

/** Whether code of a service runs, and not that of a test. */
export const isInService = (): boolean => registries.getStore() !== undefined;

const shared: unknown = Reflect.get(passport, '_strategies');
Object.defineProperty(passport, '_strategies', { get: () => registries.getStore() ?? shared });
