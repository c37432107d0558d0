/**
 * The exports for starting the service: `@customer-authorization/service`. A package of another team starts the service
 * and runs the operator's commands, both with its own grants.
 */

export type { Service } from '../bootstrap.js';
export type { MigrationClass } from '../migrations/migrations.js';
export { runCommandLine } from '../operator/cli/run-command-line.js';
export { runService } from '../run-service.js';
export type { Extension } from '../token/extension.js';
