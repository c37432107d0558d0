/** A rule for grants or routes, with a check. */
export interface Rule<Subject> {
  /** A sentence whose subject is the grant or the route. */
  title: string;
  /** Whether SQLite, which has no locks on rows and compares texts exactly, hides some mistakes. */
  showsMoreOnServer?: boolean;
  /** @throws Error if the grant or the route breaks the rule */
  check(subject: Subject): Promise<unknown>;
}

/** A rule that a test breaks by the omission of an option. */
export function undeclared(title: string, message: string): Rule<unknown> {
  return { title, check: () => Promise.reject(new Error(message)) };
}

/** Runs work for each item, at most 8 at a time. The first failure ends it. */
export async function forEach<Item>(items: Iterable<Item>, work: (item: Item) => Promise<unknown>): Promise<void> {
  const remaining = [...items];
  const worker = async () => {
    while (remaining.length > 0) await work(remaining.shift() as Item);
  };
  const endAll = (error: unknown) => {
    remaining.length = 0;
    throw error;
  };
  const workers = Array.from({ length: 8 }, () => worker().catch(endAll));
  await Promise.allSettled(workers); // no request of a failed rule runs during the next one
  await Promise.all(workers);
}

/** Adds the name of the failed case to the message of an error. */
export async function about<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`, { cause: error });
  }
}
