/** A rule for grants or routes, with a check. */
export interface Rule<Subject> {
  /** A sentence whose subject is the grant or the route. */
  title: string;
  /** @throws Error if the grant or the route breaks the rule */
  check(subject: Subject): Promise<unknown>;
}

/** A rule that a test breaks by the omission of an option. */
export function undeclared(title: string, message: string): Rule<unknown> {
  return { title, check: () => Promise.reject(new Error(message)) };
}

/** Adds the name of the failed case to the message of an error. */
export async function about<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`, { cause: error });
  }
}
