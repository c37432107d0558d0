import type { Type } from '@nestjs/common';
import type { MigrationClass } from './migrations/migrations.js';

/** The modules and migrations that another team adds to the service. */
export interface Extension {
  /** NestJS modules: those that provide the team's grants, and the modules that they need. */
  modules?: Type[];
  /** Migrations of the team's tables. They run after the service's, in the order of the timestamps in their names. */
  migrations?: MigrationClass[];
}
