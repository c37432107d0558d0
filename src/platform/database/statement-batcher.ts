import { DeadlineExceededError, isUnavailable, remainingMs } from './database-errors.js';
import type { SqlValue } from './sql-dialect.js';
import { STATEMENT_INDEX, type Statement } from './statement.js';

/** Few sizes, because each one is a prepared statement of each connection. */
const MAX_BATCH_STATEMENTS = 16;
const BATCH_SIZES = [1, 2, 4, 8, MAX_BATCH_STATEMENTS];

class WaitingStatement<Result> {
  resolve!: (result: Result) => void;
  reject!: (error: unknown) => void;
  readonly result = new Promise<Result>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });

  constructor(
    readonly parameters: SqlValue[],
    /** When its request gets 503, by performance.now(). */
    public until: number,
  ) {}
}

interface BatchRules<Result> {
  /** Whether copies fill a batch up to the next larger size. A SELECT may be sent twice, an INSERT may not. */
  readonly mayPad: boolean;
  /**
   * @param uses the parameters of each use of the statement, to be read when it is sent
   * @param waitMs how long it may wait until then
   */
  send(statement: Statement, uses: () => SqlValue[][], waitMs: number): Promise<Result>;
  split(result: Result, size: number): Result[];
  /** Copies a result for one more caller with equal parameters. Without it, each use is sent. */
  copy?(result: Result): Result;
}

/**
 * Combines up to 16 uses of a declared statement in the same event-loop tick into one, because a round trip costs more
 * than the statement (docs/performance.md). Consecutive uses with the same parameters are sent only once, because many
 * requests of one agent check the same token.
 */
export class StatementBatcher<Result> {
  private readonly waiting = new Map<Statement, WaitingStatement<Result>[]>();

  constructor(private readonly rules: BatchRules<Result>) {}

  send(statement: Statement, parameters: SqlValue[]): Promise<Result> {
    const { send, copy } = this.rules;
    const waitMs = remainingMs(Infinity);
    if (!statement.batch) return send(statement, () => [parameters], waitMs);
    const until = performance.now() + waitMs;
    if (this.waiting.size === 0) setImmediate(() => this.endTick());
    const waiting = this.waiting.get(statement) ?? [];
    const last = waiting.at(-1);
    // compared only with the statement before, so that many different statements cost no search
    if (last && copy && areEqual(last.parameters, parameters)) {
      last.until = Math.max(last.until, until);
      return last.result.then(copy);
    }
    const added = new WaitingStatement<Result>(parameters, until);
    waiting.push(added);
    this.waiting.set(statement, waiting);
    return added.result;
  }

  private endTick(): void {
    const tick = [...this.waiting];
    this.waiting.clear();
    for (const [statement, waiting] of tick) {
      while (waiting.length > 0) {
        const size = this.sizeFor(Math.min(waiting.length, MAX_BATCH_STATEMENTS));
        void this.sendTogether(statement, waiting.splice(0, size), size);
      }
    }
  }

  private sizeFor(count: number): number {
    const batchSize = this.rules.mayPad
      ? BATCH_SIZES.find((size) => size >= count)
      : BATCH_SIZES.findLast((size) => size <= count);
    return batchSize as number;
  }

  private async sendTogether(statement: Statement, waiting: WaitingStatement<Result>[], size: number): Promise<void> {
    const { send, split, mayPad } = this.rules;
    const [first] = waiting as [WaitingStatement<Result>];
    const waitMs = Math.max(...waiting.map(({ until }) => until)) - performance.now();
    if (size === 1) return send(statement, () => [first.parameters], waitMs).then(first.resolve, first.reject);
    const padding = Array<WaitingStatement<Result>>(size - waiting.length).fill(first);
    const uses = () => {
      // an unneeded SELECT changes nothing
      if (mayPad) return [...waiting, ...padding].map(({ parameters }) => parameters);
      // a write must not happen after the 503 of its request, which may be later than the result of the others
      const now = performance.now();
      for (const late of waiting.filter(({ until }) => until <= now)) late.reject(new DeadlineExceededError(0));
      return waiting.filter(({ until }) => until > now).map(({ parameters }) => parameters);
    };
    try {
      const results = split(await send(statement, uses, waitMs), size);
      for (const [index, use] of waiting.entries()) use.resolve(results[index] as Result);
    } catch (error) {
      // One statement's error, such as a duplicate key, must not fail the others. An outage or a rollback fails all,
      // and `Database` sends them again after a rollback.
      for (const use of waiting)
        if (isUnavailable(error)) use.reject(error);
        else void this.sendTogether(statement, [use], 1);
    }
  }
}

/** Both are of one statement, so they have the same length. */
function areEqual(one: SqlValue[], other: SqlValue[]): boolean {
  return one.every((value, index) => isEqual(value, other[index]));
}

function isEqual(one: SqlValue, other: SqlValue | undefined): boolean {
  return one === other || (one instanceof Date && other instanceof Date && one.getTime() === other.getTime());
}

/** Copies rows, so that no caller changes the rows of another. */
export function copyRows(rows: unknown[]): unknown[] {
  return rows.map((row) => ({ ...(row as object) }));
}

export function splitRows(rows: unknown[], size: number): unknown[][] {
  const results: unknown[][] = Array.from({ length: size }, () => []);
  for (const { [STATEMENT_INDEX]: index, ...row } of rows as Record<string, unknown>[]) {
    const result = results[index as number];
    if (!result) throw new Error('a row of a batched SELECT without the index of its statement');
    result.push(row);
  }
  return results;
}

/** An INSERT of several rows has inserted all of them, or has failed. */
export function splitInserts(_inserted: number, size: number): number[] {
  return Array<number>(size).fill(1);
}
