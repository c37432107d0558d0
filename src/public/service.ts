/**
 * The service itself: `customer-authorization-service`. Another team's package starts it with its grants, and runs the
 * operator's commands with them.
 */

export { runCommandLine } from '../cli/run-command-line.js';
export type { Extension } from '../extension.js';
export type { MigrationClass } from '../migrations/migrations.js';
export { runService } from '../run-service.js';
