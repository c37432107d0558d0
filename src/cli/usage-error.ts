/** The command line is wrong. The exit code is 2. */
export class UsageError extends Error {}

/** @throws UsageError unless there are exactly `count` parameters */
export function expectParameters(parameters: string[], count: number): void {
  if (parameters.length !== count)
    throw new UsageError(`expected ${count} parameters after the command, got ${parameters.length}`);
}
