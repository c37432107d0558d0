import { Injectable } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';

/** The metrics of one process. docs/observability.md lists them. */
@Injectable()
export class MetricsRegistry extends Registry {
  /** Adds a gauge without labels, whose value is read at each scrape. */
  gauge(name: string, help: string, value: () => number | Promise<number>): void {
    new Gauge({
      name,
      help,
      registers: [this],
      async collect() {
        this.set(await value());
      },
    });
  }
}
