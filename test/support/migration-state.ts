import { DataSource } from 'typeorm';
import { completeUpgrade } from '../../src/access-token/migration-state.js';
import { RecordedValue } from '../../src/access-token/recorded-value.entity.js';
import type { TestService } from './test-service.js';

/**
 * Makes the database of a service one whose upgrade from release 1 is not complete. Call it before the first request:
 * a process does not read the state again once the upgrade is complete.
 */
export async function reopenUpgrade({ application }: TestService): Promise<void> {
  await application.get(DataSource).getRepository(RecordedValue).delete({ name: 'complete_release' });
}

/** Does what `migrate --complete` does. */
export function completeUpgradeOf({ application }: TestService): Promise<boolean> {
  return completeUpgrade(application.get(DataSource));
}
