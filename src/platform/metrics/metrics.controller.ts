import { Get, Header } from '@nestjs/common';
import { ApiRoute } from '../http/api-route.js';
import { ManagementController } from '../http/surfaces.js';
import { MetricsRegistry } from './metrics-registry.js';

/** The metrics in the text format of Prometheus. */
@ManagementController('metrics')
export class MetricsController {
  constructor(private readonly metrics: MetricsRegistry) {}

  @Get()
  @ApiRoute({ summary: 'Get the metrics, in the text format of Prometheus', response: 'text/plain' })
  @Header('Content-Type', 'text/plain; version=0.0.4; charset=utf-8')
  scrape(): Promise<string> {
    return this.metrics.metrics();
  }
}
