import { Injectable } from '@nestjs/common';

/** Code that stores data of customers in a table of its own, as a grant may. */
export interface CustomerDataParticipant {
  /**
   * Deletes the data of a customer that is being erased. It is called before and after the customer's row is erased, so that
   * no data stays that was written in between. The customer may be unknown to the participant.
   */
  onErase(entityId: string): Promise<void>;

  /** Those of these customers that must be retained when their browser is deleted as idle. `entityIds` is never empty. */
  mustRetain(entityIds: string[]): Promise<string[]>;

  /** Other ids by which a customer was known, for the operator. */
  linkedIds(entityId: string): Promise<string[]>;
}

/** The participants in erasing and purging customers. Each adds itself when the application starts. */
@Injectable()
export class CustomerDataParticipants {
  private readonly participants: CustomerDataParticipant[] = [];

  add(participant: CustomerDataParticipant): void {
    this.participants.push(participant);
  }

  async onErase(entityId: string): Promise<void> {
    for (const participant of this.participants) await participant.onErase(entityId);
  }

  /** In no order. `entityIds` must not be empty. */
  mustRetain(entityIds: string[]): Promise<string[]> {
    return this.collect((participant) => participant.mustRetain(entityIds));
  }

  linkedIds(entityId: string): Promise<string[]> {
    return this.collect((participant) => participant.linkedIds(entityId));
  }

  private async collect(idsOf: (participant: CustomerDataParticipant) => Promise<string[]>): Promise<string[]> {
    const ids: string[] = [];
    for (const participant of this.participants) ids.push(...(await idsOf(participant)));
    return ids;
  }
}
