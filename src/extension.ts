import type { Type } from '@nestjs/common';
import type { AuditSink } from './audit/audit-event.js';
import type { MigrationClass } from './migrations/migrations.js';
import type { LimitDeclarations } from './platform/configuration/rate-limit-rule.js';
import type { ExtensionPage } from './try-it/extension-page.js';

/** What another team adds to the service. */
export interface Extension {
  /** A name in snake_case, with which the names of the extension's own audit events begin: `device_approval.approved`. */
  name?: string;
  /** NestJS modules: those that provide the team's grants, and the modules that they need. */
  modules?: Type[];
  /** Migrations of the team's tables. They run after the service's, in the order of the timestamps in their names. */
  migrations?: MigrationClass[];
  /** The page to which the try-it page links. */
  tryIt?: ExtensionPage;
  /**
   * Limits that `Limits` counts: `{ qr_guess: '30/300' }` allows 30 in 300 seconds. RATE_LIMIT can change them. The
   * names are in snake_case.
   */
  limits?: LimitDeclarations;
  /** Receives all audit events, in addition to the log. */
  auditSink?: AuditSink;
}
