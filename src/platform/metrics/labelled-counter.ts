import { Counter } from 'prom-client';
import type { MetricsRegistry } from './metrics-registry.js';

/**
 * Values by labels, until prom-client is told of them: when it is scraped, not at each request, which cost the hot path 20 µs
 * (docs/performance.md). Labels must be constants of the code; a label that callers make up would fill the memory.
 */
export class LabelledValues<Value> {
  private readonly below = new Map<string, LabelledValues<Value>>();
  private own: Value | undefined;

  constructor(private readonly make: () => Value) {}

  /** The values with this label next. */
  at(label: string): LabelledValues<Value> {
    const known = this.below.get(label);
    if (known) return known;
    const made = new LabelledValues(this.make);
    this.below.set(label, made);
    return made;
  }

  /** The value with these labels and no more. */
  get value(): Value {
    this.own ??= this.make();
    return this.own;
  }

  /** Makes the value be there, before there is anything to count. */
  touch(): void {
    this.own ??= this.make();
  }

  /** Every value, with its labels in the order in which they were asked for. */
  *entries(labels: string[] = []): Generator<[string[], Value]> {
    if (this.own !== undefined) yield [labels, this.own];
    for (const [label, below] of this.below) yield* below.entries([...labels, label]);
  }
}

/** How often something happened. */
export interface Count {
  count: number;
}

/** A counter of prom-client's, counted by `at(…).at(…).value.count++` in the order of its labels. */
export function labelledCounter(
  metrics: MetricsRegistry,
  { name, help, labelNames }: { name: string; help: string; labelNames: string[] },
): LabelledValues<Count> {
  const counts = new LabelledValues<Count>(() => ({ count: 0 }));
  new Counter({
    name,
    help,
    labelNames,
    registers: [metrics],
    collect() {
      this.reset();
      for (const [labels, { count }] of counts.entries()) this.inc(named(labelNames, labels), count);
    },
  });
  return counts;
}

/** Labels by their names. */
export function named(names: string[], labels: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name, index) => [name, labels[index] ?? '']));
}
