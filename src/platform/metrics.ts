import { Get, Header, Injectable } from '@nestjs/common';
import { Counter, Gauge, Registry } from 'prom-client';
import { ApiRoute } from './http/api-route.js';
import { ManagementController } from './http/listener.decorators.js';

@Injectable()
export class MetricsRegistry extends Registry {
  /** All watched files of a process share the gauge. */
  readonly invalidFiles = new Gauge({
    name: 'cas_file_invalid',
    help: '1 while the file is invalid; the process uses its last valid content, or a part of it.',
    labelNames: ['file'],
    registers: [this],
  });

  /** Label values never come from the caller of a route. */
  counter<Label extends string>(name: string, help: string, ...labelNames: Label[]): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this] });
  }

  /** The value is read at each scrape. */
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

  /** The value is read at each scrape. */
  observedCounter(name: string, help: string, value: () => number): void {
    new Counter({
      name,
      help,
      registers: [this],
      collect() {
        this.reset();
        this.inc(value());
      },
    });
  }
}

@ManagementController('metrics')
export class MetricsController {
  constructor(private readonly metrics: MetricsRegistry) {}

  @Get()
  @ApiRoute({
    summary: 'Get the metrics, in the text format of Prometheus',
    description: 'The names and labels are part of the documentation for operators.',
    response: 'text/plain',
  })
  @Header('Content-Type', 'text/plain; version=0.0.4; charset=utf-8')
  scrape(): Promise<string> {
    return this.metrics.metrics();
  }
}
