import { type DynamicModule, Module } from '@nestjs/common';
import { Clock } from '../clock.js';
import { MetricsRegistry } from '../metrics.js';
import { Audit } from './audit.js';
import type { AuditSink } from './audit-event.js';
import { assertExtensionName, ExtensionAudit } from './extension-audit.js';

@Module({})
export class AuditModule {
  /** @param extensionName the prefix of the extension's own events */
  static forRoot(sinks: AuditSink[], extensionName?: string): DynamicModule {
    if (extensionName !== undefined) assertExtensionName(extensionName);
    const createAudit = (metrics: MetricsRegistry, clock: Clock) => new Audit(sinks, metrics, clock);
    const createExtensionAudit = (audit: Audit) => new ExtensionAudit(audit, extensionName);
    return {
      module: AuditModule,
      global: true,
      providers: [
        { provide: Audit, inject: [MetricsRegistry, Clock], useFactory: createAudit },
        { provide: ExtensionAudit, inject: [Audit], useFactory: createExtensionAudit },
      ],
      exports: [Audit, ExtensionAudit],
    };
  }
}
