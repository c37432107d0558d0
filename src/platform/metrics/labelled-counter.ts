import { Counter } from 'prom-client';
import type { MetricsRegistry } from './metrics-registry.js';

/**
 * Values by labels. prom-client reads them at each scrape. Updating prom-client at each request would cost the hot path
 * 20 µs (docs/performance.md). Label values must be constants of the code: values from callers could fill the memory.
 */
export class LabelledValues<Value> {
  private readonly children = new Map<string, LabelledValues<Value>>();
  private ownValue: Value | undefined;

  constructor(private readonly create: () => Value) {}

  /** The values whose next label is this one. */
  at(label: string): LabelledValues<Value> {
    const existing = this.children.get(label);
    if (existing) return existing;
    const created = new LabelledValues(this.create);
    this.children.set(label, created);
    return created;
  }

  /** The value with exactly these labels. */
  get value(): Value {
    this.ownValue ??= this.create();
    return this.ownValue;
  }

  /** Creates the value, so that a counter shows 0 before its first event. */
  touch(): void {
    this.ownValue ??= this.create();
  }

  /** Every value, with its labels in the order of the calls of `at`. */
  *entries(labels: string[] = []): Generator<[string[], Value]> {
    if (this.ownValue !== undefined) yield [labels, this.ownValue];
    for (const [label, child] of this.children) yield* child.entries([...labels, label]);
  }
}

/** The number of events. */
export interface Count {
  count: number;
}

/**
 * A counter of prom-client. `at(…).at(…).value.count++` increments it, with the labels in the order of `labelNames`.
 */
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
      for (const [labels, { count }] of counts.entries()) this.inc(labelsByName(labelNames, labels), count);
    },
  });
  return counts;
}

/** The label values by the names of the labels. */
export function labelsByName(names: string[], labels: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name, index) => [name, labels[index] ?? '']));
}
