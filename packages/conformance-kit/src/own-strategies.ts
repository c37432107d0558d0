import { AsyncLocalStorage } from 'node:async_hooks';
import { passport } from 'customer-authorization-service/testing-host';

const registries = new AsyncLocalStorage<object>();

/**
 * Starts a service with strategies of its own. Passport has one registry of strategies per process, in which the service
 * that started last would replace the strategy of the others. Node handles the requests of a port in the asynchronous
 * context in which the port was opened.
 */
export function withOwnStrategies<Result>(start: () => Promise<Result>): Promise<Result> {
  return registries.run({}, start);
}

const shared: unknown = Reflect.get(passport, '_strategies');
Object.defineProperty(passport, '_strategies', { get: () => registries.getStore() ?? shared });
