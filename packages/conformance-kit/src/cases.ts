/** Runs work for each item, at most 8 at a time. The first failure ends it. */
export async function forEach<Item>(items: Iterable<Item>, work: (item: Item) => Promise<unknown>): Promise<void> {
  const remaining = [...items];
  const worker = async () => {
    while (remaining.length > 0) await work(remaining.shift() as Item);
  };
  try {
    await Promise.all(Array.from({ length: 8 }, worker));
  } finally {
    remaining.length = 0;
  }
}

/** Adds the name of the failed case to the message of an error. */
export async function about<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`, { cause: error });
  }
}
