import { Gauge } from 'prom-client';
import type { Clock } from '../platform/clock.js';
import type { MetricsRegistry } from '../platform/metrics/metrics-registry.js';
import { type KeyLife, stateOf } from './key-rotation.js';

/** Shows how many keys there are in each state, and how long the one that signs may go on. */
export function measureKeys(keys: () => KeyLife[], clock: Clock, metrics: MetricsRegistry): void {
  const registers = [metrics];
  new Gauge({
    name: 'cas_signing_keys',
    help: 'Signing keys by state; verifying ones have signed before.',
    labelNames: ['state'],
    registers,
    collect() {
      const states = keys().map((key) => stateOf(key, keys(), clock.seconds()));
      for (const state of ['upcoming', 'signing', 'verifying'] as const)
        this.set({ state }, states.filter((each) => each === state).length);
    },
  });
  new Gauge({
    name: 'cas_signing_key_seconds_left',
    help: 'Until no key that is in the file now may sign any more; absent where that never comes.',
    labelNames: [],
    registers,
    collect() {
      this.remove();
      const last = Math.max(...keys().map(({ exp = Infinity }) => exp));
      if (Number.isFinite(last)) this.set(last - clock.seconds());
    },
  });
}
