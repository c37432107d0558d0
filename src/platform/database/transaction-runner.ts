import type { QueryRunner } from 'typeorm';

/** The query runner of one transaction, whose work may send statements without awaiting them. */
export interface TransactionRunner {
  runner: QueryRunner;
  /** From now on, no statement begins. Resolves when those under way have ended. */
  end(): Promise<void>;
}

/** Derives the query runner of one transaction from a query runner of TypeORM. */
export function transactionRunner(shared: QueryRunner): TransactionRunner {
  const underWay = new Set<Promise<unknown>>();
  let hasEnded = false;
  const query = (...parameters: Parameters<QueryRunner['query']>): Promise<unknown> => {
    if (hasEnded) return Promise.reject(new Error('the transaction has ended'));
    const sent: Promise<unknown> = shared.query(...parameters);
    underWay.add(sent);
    const forget = () => void underWay.delete(sent);
    sent.then(forget, forget);
    return sent;
  };
  return {
    runner: Object.create(shared, { query: { value: query }, isTransactionActive: { value: true } }),
    async end() {
      hasEnded = true;
      await Promise.allSettled(underWay);
    },
  };
}
