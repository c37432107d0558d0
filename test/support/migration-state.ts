import { DataSource } from 'typeorm';
import { completeUpgrade } from '../../src/access-token/migration-state.js';
import { RecordedValue } from '../../src/access-token/recorded-value.entity.js';
import { createTestDatabase } from '../../src/testing/test-database.js';
import { startTestService, type TestService } from './test-service.js';

type Options = Parameters<typeof startTestService>[0];

/** Starts a service on a database whose upgrade from release 1 is not complete. */
export async function startServiceBeforeCompletion(options: Options = {}): Promise<TestService> {
  const database = await createTestDatabase();
  const first = await startTestService({ ...options, database });
  await first.application.get(DataSource).getRepository(RecordedValue).delete({ name: 'complete_release' });
  await first.stop();
  const service = await startTestService({ ...options, database });
  const stop = async () => {
    await service.stop();
    await database.remove();
  };
  return { ...service, stop };
}

/** Does what `migrate --complete` does. */
export function completeUpgradeOf({ application, clock }: TestService): Promise<boolean> {
  return completeUpgrade(application.get(DataSource), clock.now());
}
