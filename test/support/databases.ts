import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { createEmptyDatabase, type TestDatabase } from '../../packages/conformance-kit/src/test-database.js';

/** A database for the tests of a file or of a `describe`, by default without tables. It exists while the tests run. */
export function useDatabase(create = createEmptyDatabase): TestDatabase {
  const database = {} as TestDatabase;
  beforeAll(async () => void Object.assign(database, await create()));
  afterAll(() => database.remove?.());
  return database;
}

/** A database without tables for the current test. */
export async function emptyDatabaseOfTest(): Promise<TestDatabase> {
  const database = await createEmptyDatabase();
  onTestFinished(() => database.remove());
  return database;
}
