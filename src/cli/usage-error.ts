/** The command line is wrong. The exit code is 2. */
export class UsageError extends Error {}

/** @throws UsageError unless there are exactly `count` parameters */
export function expectParameters(parameters: string[], count: number): void {
  if (parameters.length !== count)
    throw new UsageError(`${count} expected after the command, ${parameters.length} given`);
}
