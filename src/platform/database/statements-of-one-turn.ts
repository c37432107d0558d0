import { isUnavailable } from './database-errors.js';
import type { SqlValue } from './sql-client.js';

/** How many go as one: few sizes, since each is a prepared statement of each connection. */
const LARGEST = 16;
const SIZES = [1, 2, 4, 8, LARGEST];

interface Asked<Result> {
  parameters: SqlValue[];
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/** How statements of one text become one. */
export interface Union<Result> {
  /** Whether a statement may be sent twice, so that a larger size does for a smaller number. */
  readonly padded: boolean;
  /** Whether several of this text can be one; else each goes as it is. */
  admits(sql: string): boolean;
  /** The text of one statement that does what `size` of this text do. */
  textOf(sql: string, size: number): string;
  send(sql: string, parameters: SqlValue[]): Promise<Result>;
  /** What each of the `size` would have resolved to. */
  split(result: Result, size: number): Result[];
}

/**
 * Sends statements of one text that are asked for in one turn of the event loop as one: a busy process reads several
 * requests in a turn, and a round trip costs the process and the database more than what it asks for
 * (docs/performance.md). Alone, a statement goes as it is, and no later.
 */
export class StatementsOfOneTurn<Result> {
  private readonly asked = new Map<string, Asked<Result>[]>();
  /** The unions of each text, by size. */
  private readonly texts = new Map<string, string[]>();

  constructor(private readonly union: Union<Result>) {}

  send(sql: string, parameters: SqlValue[]): Promise<Result> {
    return new Promise((resolve, reject) => {
      const asked = this.asked.get(sql);
      if (asked) return void asked.push({ parameters, resolve, reject });
      if (this.asked.size === 0) setImmediate(() => this.endTurn());
      this.asked.set(sql, [{ parameters, resolve, reject }]);
    });
  }

  private endTurn(): void {
    const turn = [...this.asked];
    this.asked.clear();
    for (const [sql, asked] of turn) {
      const largest = asked.length > 1 && this.union.admits(sql) ? LARGEST : 1;
      while (asked.length > 0) {
        const size = this.sizeFor(Math.min(asked.length, largest));
        this.sendTogether(sql, asked.splice(0, size), size);
      }
    }
  }

  private sizeFor(count: number): number {
    const size = this.union.padded ? SIZES.find((each) => each >= count) : SIZES.findLast((each) => each <= count);
    return size as number;
  }

  private sendTogether(sql: string, asked: Asked<Result>[], size: number): void {
    const [first] = asked as [Asked<Result>];
    if (size === 1) return void this.union.send(sql, first.parameters).then(first.resolve, first.reject);
    const padding = Array<Asked<Result>>(size - asked.length).fill(first);
    const parameters = [...asked, ...padding].flatMap((each) => each.parameters);
    const together = this.union.send(this.textOf(sql, size), parameters);
    const split = together.then((result) => this.union.split(result, size));
    split.then(
      (results) => {
        for (const [index, each] of asked.entries()) each.resolve(results[index] as Result);
      },
      (error) => {
        // a fault of one is no fault of the others
        for (const each of asked)
          if (isUnavailable(error)) each.reject(error);
          else this.sendTogether(sql, [each], 1);
      },
    );
  }

  private textOf(sql: string, size: number): string {
    const texts = this.texts.get(sql) ?? [];
    this.texts.set(sql, texts);
    texts[size] ??= this.union.textOf(sql, size);
    return texts[size];
  }
}

/** Where a row of a union of SELECTs stands that it is of: a name that no column has. */
const NTH = 'nth_of_turn';

/** SELECTs side by side, each row with the number of its SELECT until it is handed over. */
export const unionOfSelects = {
  padded: true,

  /** It names its columns, is no union itself, locks nothing, and has an order only to say which rows it wants. */
  admits: (sql: string): boolean =>
    /^\s*SELECT (?!DISTINCT\b|\*|\w+\.\*)/.test(sql) &&
    !/\bUNION\b|\bFOR (UPDATE|SHARE)\b|\bORDER BY(?!.*\bLIMIT\b)/s.test(sql),

  textOf(sql: string, size: number): string {
    const numbered = (nth: number) => `(${sql.trim().replace(/^SELECT /, `SELECT ${nth} AS ${NTH}, `)})`;
    return Array.from({ length: size }, (_, nth) => numbered(nth)).join(' UNION ALL ');
  },

  split(rows: unknown[], size: number): unknown[][] {
    const results: unknown[][] = Array.from({ length: size }, () => []);
    for (const { [NTH]: nth, ...row } of rows as Record<string, unknown>[]) {
      const result = results[nth as number];
      if (!result) throw new Error('a row of a union without the number of its SELECT');
      result.push(row);
    }
    return results;
  },
};

/** INSERTs of one row each: one INSERT of several rows. */
export const unionOfInserts = {
  padded: false,

  admits: (sql: string): boolean => /\bVALUES \([^()]*\)\s*$/.test(sql),

  textOf(sql: string, size: number): string {
    const [row = ''] = /\([^()]*\)\s*$/.exec(sql) ?? [];
    return sql + `, ${row}`.repeat(size - 1);
  },

  split: (_changed: number, size: number): number[] => Array<number>(size).fill(1),
};
