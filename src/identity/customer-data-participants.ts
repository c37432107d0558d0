import { Injectable } from '@nestjs/common';

/** Something that keeps data of customers in a table of its own, as a grant may. */
export interface CustomerDataParticipant {
  /** Forgets a customer that is being erased. Told twice, so that nothing stays that came in between; it may know nobody. */
  onErase(entityId: string): Promise<void>;

  /** Those of these customers that stay when the browser they came with has not been seen for as long as cookies live. */
  mustRetain(entityIds: string[]): Promise<string[]>;

  /** Other ids by which a customer was known, for the operator. */
  linkedIds(entityId: string): Promise<string[]>;
}

/** Whoever keeps data of customers says so here, when the application starts. */
@Injectable()
export class CustomerDataParticipants {
  private readonly participants: CustomerDataParticipant[] = [];

  add(keeper: CustomerDataParticipant): void {
    this.participants.push(keeper);
  }

  async onErase(entityId: string): Promise<void> {
    for (const keeper of this.participants) await keeper.onErase(entityId);
  }

  /** Of at least one customer; in no order. */
  mustRetain(entityIds: string[]): Promise<string[]> {
    return this.ask((keeper) => keeper.mustRetain(entityIds));
  }

  linkedIds(entityId: string): Promise<string[]> {
    return this.ask((keeper) => keeper.linkedIds(entityId));
  }

  private async ask(question: (keeper: CustomerDataParticipant) => Promise<string[]>): Promise<string[]> {
    const answers: string[] = [];
    for (const keeper of this.participants) answers.push(...(await question(keeper)));
    return answers;
  }
}
