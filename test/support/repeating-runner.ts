import type { RunnerTestCase } from 'vitest';
import { VitestTestRunner } from 'vitest/runners';

/** Runs each test as often as TEST_REPEATS says, for tests of races (docs/testing.md). */
export default class RepeatingRunner extends VitestTestRunner {
  override onBeforeRunTask(test: RunnerTestCase): Promise<void> {
    test.repeats ??= Number(process.env.TEST_REPEATS ?? 1) - 1;
    return super.onBeforeRunTask(test);
  }
}
