import { Database } from '../../src/platform/database/database.js';
import { requestContext } from '../../src/platform/request-context/request-context.js';
import { deferred } from './deferred.js';
import type { TestService } from './test-service.js';

/** The methods of `Database` that send a statement for a request. */
const METHODS = ['select', 'insert', 'execute', 'transaction'] as const;

/** Stops one request after its n-th statement, until the test opens the gate. */
export class StatementGate {
  /** Resolves when the database has executed the statement. */
  readonly reached: Promise<void>;
  private readonly opened = deferred();
  private count = 0;
  private readonly restore: () => void;

  constructor({ application }: TestService, requestId: string, statement: number) {
    const database = application.get(Database);
    const arrived = deferred();
    this.reached = arrived.promise;
    const pass = async () => {
      if (requestContext.current()?.callerRequestId !== requestId || ++this.count !== statement) return;
      arrived.resolve();
      await this.opened.promise;
    };
    for (const name of METHODS) {
      const original = database[name].bind(database) as (...all: unknown[]) => Promise<unknown>;
      const gated = async (...all: unknown[]) => {
        const result = await original(...all);
        await pass();
        return result;
      };
      Object.assign(database, { [name]: gated });
    }
    this.restore = () => {
      for (const name of METHODS) Reflect.deleteProperty(database, name);
    };
  }

  open(): void {
    this.opened.resolve();
  }

  close(): void {
    this.open();
    this.restore();
  }
}
