import { type DynamicModule, Module } from '@nestjs/common';
import { MetricsRegistry } from '../platform/metrics/metrics-registry.js';
import { Audit } from './audit.js';
import type { AuditSink } from './audit-event.js';
import { AuditMetrics } from './audit-metrics.js';

/** The account of what changed who may do what; every module may add to it. */
@Module({})
export class AuditModule {
  static forRoot(sink: AuditSink): DynamicModule {
    const useFactory = (metrics: MetricsRegistry) => new Audit([sink, new AuditMetrics(metrics)]);
    return {
      module: AuditModule,
      global: true,
      providers: [{ provide: Audit, inject: [MetricsRegistry], useFactory }],
      exports: [Audit],
    };
  }
}
