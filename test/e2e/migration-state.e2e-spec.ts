import { afterEach, describe, expect, it } from 'vitest';
import { MigrationState } from '../../src/access-token/migration-state.js';
import { Database } from '../../src/platform/database/database.js';
import { completeUpgradeOf, reopenUpgrade } from '../support/migration-state.js';
import { startTestService, type TestService } from '../support/test-service.js';

describe('protocol §9.6: the state of the upgrade from release 1', () => {
  let service: TestService;
  afterEach(() => service?.stop());

  const assertComplete = () => service.application.get(MigrationState).assertComplete();
  const statements = () => service.application.get(Database).statements;

  it('is complete in a new database, and is not read again', async () => {
    service = await startTestService();
    const before = statements();
    await assertComplete();
    await assertComplete();
    expect(statements()).toBe(before);
    expect(await completeUpgradeOf(service)).toBe(false);
  });

  it('is incomplete in a database with data of release 1 until migrate --complete has run', async () => {
    const other = await startTestService();
    await reopenUpgrade(other);
    service = await startTestService({ database: other.database });
    const error = { status: 503, code: 'temporarily_unavailable' };
    await expect(assertComplete()).rejects.toMatchObject(error);
    await expect(assertComplete()).rejects.toMatchObject(error);
    expect(await completeUpgradeOf(service)).toBe(true);
    expect(await completeUpgradeOf(service)).toBe(false);
    await assertComplete();
    await service.stop();
    await other.stop();
  });
});
