import { type DynamicModule, Module } from '@nestjs/common';
import { MetricsRegistry } from '../metrics.js';
import { Audit } from './audit.js';
import type { AuditSink } from './audit-event.js';

@Module({})
export class AuditModule {
  static forRoot(log: AuditSink): DynamicModule {
    const createAudit = (metrics: MetricsRegistry) => new Audit(log, metrics);
    return {
      module: AuditModule,
      global: true,
      providers: [{ provide: Audit, inject: [MetricsRegistry], useFactory: createAudit }],
      exports: [Audit],
    };
  }
}
