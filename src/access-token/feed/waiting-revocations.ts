import type { WaitingRow } from './publication-statements.js';

/**
 * Since when committed revocations wait for their positions, as far as this process has seen. Other revocations may get
 * positions meanwhile, because the publisher leaves out rows that a transaction has locked.
 */
export class WaitingRevocations {
  private since = new Map<string, number>();

  /**
   * @param rows all that wait now
   * @param now by `performance.now()`
   */
  update(rows: readonly WaitingRow[], now: number): void {
    // a revocation that was published and changed since has another position, and waits since its change
    const keys = rows.map(({ kind, value, position }) => `${kind} ${value} ${position}`);
    this.since = new Map(keys.map((key) => [key, this.since.get(key) ?? now]));
  }

  /** Since when the oldest of them waits, by `performance.now()`; `undefined` if none waits. */
  get oldestSince(): number | undefined {
    return this.since.size === 0 ? undefined : Math.min(...this.since.values());
  }
}
