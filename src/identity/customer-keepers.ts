import { Injectable } from '@nestjs/common';

/** Something that keeps data of customers in a table of its own, as a grant may. */
export interface CustomerKeeper {
  /** Forgets a customer that is being erased. Told twice, so that nothing stays that came in between; it may know nobody. */
  forget(entityId: string): Promise<void>;

  /** Those of these customers that stay when the browser they came with has not been seen for as long as cookies live. */
  kept(entityIds: string[]): Promise<string[]>;

  /** Other ids by which a customer was known, for the operator. */
  linkedIds(entityId: string): Promise<string[]>;
}

/** Whoever keeps data of customers says so here, when the application starts. */
@Injectable()
export class CustomerKeepers {
  private readonly keepers: CustomerKeeper[] = [];

  add(keeper: CustomerKeeper): void {
    this.keepers.push(keeper);
  }

  async forget(entityId: string): Promise<void> {
    for (const keeper of this.keepers) await keeper.forget(entityId);
  }

  /** Of at least one customer; in no order. */
  kept(entityIds: string[]): Promise<string[]> {
    return this.ask((keeper) => keeper.kept(entityIds));
  }

  linkedIds(entityId: string): Promise<string[]> {
    return this.ask((keeper) => keeper.linkedIds(entityId));
  }

  private async ask(question: (keeper: CustomerKeeper) => Promise<string[]>): Promise<string[]> {
    const answers: string[] = [];
    for (const keeper of this.keepers) answers.push(...(await question(keeper)));
    return answers;
  }
}
