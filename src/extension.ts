import type { Type } from '@nestjs/common';
import type { MigrationClass } from './migrations/migrations.js';

/** What another team adds to the service. */
export interface Extension {
  /** Nest modules: those that provide its grants, and whatever these need. */
  modules?: Type[];
  /** Steps of its own schema; they run after the service's, in the order of the times in their names. */
  migrations?: MigrationClass[];
}
