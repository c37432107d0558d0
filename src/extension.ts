import type { DynamicModule, Type } from '@nestjs/common';
import type { MigrationClass } from './migrations/migrations.js';
import type { AuditSink } from './platform/audit/audit-event.js';
import type { Configuration } from './platform/configuration/configuration.js';
import type { LimitDeclarations } from './platform/configuration/rate-limit-rule.js';

/** What another team adds to the service. */
export interface Extension {
  /** A name in snake_case, with which the names of the extension's own audit events begin: `device_approval.approved`. */
  name?: string;
  /** NestJS modules: those that provide the team's grants, and the modules that they need. */
  modules?: (Type | DynamicModule)[];
  /** Migrations of the team's tables. They run after the service's, in the order of the timestamps in their names. */
  migrations?: MigrationClass[];
  /** Names the registry file if REGISTRY_FILE is not set. It is called once before the start, and may create the file. */
  registryFile?: (configuration: Configuration) => string | undefined;
  /**
   * Limits that `Limits` counts: `{ qr_guess: '30/300' }` allows 30 in 300 seconds. RATE_LIMIT can change them. The
   * names are in snake_case.
   */
  limits?: LimitDeclarations;
  /** Receives all audit events, in addition to the log. */
  auditSink?: AuditSink;
}
