import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { onMariadb } from '../../packages/conformance-kit/src/test-database.js';
import { IS_NIGHTLY } from '../nightly.js';
import { figure } from '../support/measurements.js';

/** SQLite has one writer at a time, so few rounds are enough. */
const DEFAULT_ROUND_COUNT = onMariadb ? 16 : 4;
/** The number of rounds of each race. */
const ROUND_COUNT = Number(process.env.RACE_ROUNDS ?? (IS_NIGHTLY ? 100 : DEFAULT_ROUND_COUNT));
/** On a busy machine a round can take a second. */
export const RACE_TIMEOUT_MS = 300_000 + ROUND_COUNT * 1_000;
/** Races that run at the same time. With more, a busy machine cannot respond to all requests within 3 s. */
const LANE_COUNT = 4;
/**
 * The requests of a round begin within this time at random, so that each can come before, during or after the other.
 */
const JITTER_MS = 3;
/** The first correction of the time between the two requests of a round. */
const FIRST_STEP_MS = 1;
const MAX_STEP_MS = 512;
/** If only one order has occurred, at most so many rounds follow. */
const MAX_MORE_ROUNDS = 100;

/** How a round ended: which of the two requests came first, as far as that can be seen. */
export type Order = 'first' | 'second' | 'unknown';

/**
 * Decides how much later the second request of a round is sent than the first one. Requests need different times, which
 * also depend on the machine. If one order occurs, the other one becomes more probable in the next round.
 */
class Stagger {
  private delayMs = 0;
  private stepMs = FIRST_STEP_MS;
  private last: Order | undefined;

  /** @param order whether the first or the second request came first */
  note(order: Order): void {
    if (order === 'unknown') return;
    this.stepMs = order === this.last ? Math.min(this.stepMs * 2, MAX_STEP_MS) : FIRST_STEP_MS;
    this.last = order;
    this.delayMs += order === 'first' ? -this.stepMs : this.stepMs;
  }

  /** Sends both requests, each after a random time, and resolves to their results. */
  race<First, Second>(first: () => Promise<First>, second: () => Promise<Second>): Promise<[First, Second]> {
    const delay = (ms: number) => sleep(Math.max(0, ms) + Math.random() * JITTER_MS);
    return Promise.all([delay(-this.delayMs).then(first), delay(this.delayMs).then(second)]);
  }
}

/** Sends the two requests of a round at about the same time. */
export type Race = Stagger['race'];

/**
 * Runs the rounds of a race, and records how often each order occurred. Fails if one of the two orders did not occur,
 * because the race then proves nothing.
 *
 * @param round prepares one round, calls `race` once, and checks the results
 * @param lanes the number of rounds at the same time. With fewer lanes, the race has fewer rounds
 */
export async function inRounds(
  name: string,
  round: (race: Race, number: number) => Promise<Order>,
  lanes = LANE_COUNT,
): Promise<Record<Order, number>> {
  const orders: Record<Order, number> = { first: 0, second: 0, unknown: 0 };
  const isOneSided = () => orders.first === 0 || orders.second === 0;
  const count = Math.ceil((ROUND_COUNT * lanes) / LANE_COUNT);
  let begun = 0;
  const startedAt = performance.now();
  const runLane = async () => {
    const stagger = new Stagger();
    while (begun < count || (begun < count + MAX_MORE_ROUNDS && isOneSided())) {
      const order = await round((first, second) => stagger.race(first, second), begun++);
      stagger.note(order);
      orders[order]++;
    }
  };
  await Promise.all(Array.from({ length: lanes }, runLane));
  figure(`${name}: ${begun} rounds, ${JSON.stringify(orders)}, ${Math.round(performance.now() - startedAt)} ms`);
  expect(orders.first, 'rounds in which the first request came first').toBeGreaterThan(0);
  expect(orders.second, 'rounds in which the second request came first').toBeGreaterThan(0);
  return orders;
}
