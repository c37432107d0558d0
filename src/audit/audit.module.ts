import { type DynamicModule, Module } from '@nestjs/common';
import { MetricsRegistry } from '../platform/metrics/metrics-registry.js';
import { Audit } from './audit.js';
import type { AuditSink } from './audit-event.js';
import { AuditMetrics } from './audit-metrics.js';

/** The audit log of changes of access rights. The module is global, because every module may record events. */
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
