import { Gauge } from 'prom-client';
import type { Clock } from '../platform/clock.js';
import type { MetricsRegistry } from '../platform/metrics/metrics-registry.js';
import { type KeyValidity, stateOf } from './key-rotation.js';

/** Exports the number of keys per state, and the seconds until the last key expires. */
export function registerKeyMetrics(keys: () => KeyValidity[], clock: Clock, metrics: MetricsRegistry): void {
  const registers = [metrics];
  new Gauge({
    name: 'cas_signing_keys',
    help: 'Signing keys by state; a verifying key has signed before and signs no more.',
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
    help: 'Seconds until no key of the file may sign; absent if a key has no exp.',
    labelNames: [],
    registers,
    collect() {
      this.remove();
      const last = Math.max(...keys().map(({ exp = Infinity }) => exp));
      if (Number.isFinite(last)) this.set(last - clock.seconds());
    },
  });
}
