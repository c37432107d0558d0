import type { GrantMetadata } from '../token/grant.js';
import type { GrantKit } from './grant-kit.js';
import type { GrantTestContext } from './grant-test-context.js';

/** A service-wide rule, and how a grant is tested for it. */
export interface Rule {
  /** A sentence whose subject is the grant. */
  title: string;
  /** @throws Error that says what breaks the rule */
  check(context: GrantTestContext): Promise<void>;
}

/** The rules on one matter that apply to what a grant declares. */
export type RuleSet = (declared: GrantMetadata, kit: GrantKit) => Rule[];

/** The same for each, a few at a time; the first failure ends it. */
export async function forEach<Item>(items: Iterable<Item>, work: (item: Item) => Promise<unknown>): Promise<void> {
  const left = [...items];
  const worker = async () => {
    while (left.length > 0) await work(left.shift() as Item);
  };
  try {
    await Promise.all(Array.from({ length: 8 }, worker));
  } finally {
    left.length = 0;
  }
}

/** Says of a failure which of several things it is about. */
export async function about<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`, { cause: error });
  }
}
