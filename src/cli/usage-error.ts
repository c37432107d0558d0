/** The command line is not one of this tool's: exit code 2. */
export class UsageError extends Error {}

/** Insists on exactly these many parameters. */
export function expectParameters(parameters: string[], count: number): void {
  if (parameters.length !== count)
    throw new UsageError(`${count} expected after the command, ${parameters.length} given`);
}
