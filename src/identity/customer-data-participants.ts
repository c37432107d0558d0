import { Injectable } from '@nestjs/common';

/** Code, such as a grant, that stores data of customers in its own table. */
export interface CustomerDataParticipant {
  /**
   * Deletes the data of a customer that is being erased. The service calls it before and after erasing the customer's
   * row, so that no data remains that was written in between. The participant may have no data of the customer.
   */
  onErase(entityId: string): Promise<void>;

  /**
   * Returns those of these customers that must be retained when their browser is deleted as idle. `entityIds` has at
   * least one id.
   */
  mustRetain(entityIds: string[]): Promise<string[]>;

  /** Returns other ids of a customer, for the operator. */
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

  /** Returns the ids that a participant must retain, in no order. `entityIds` has at least one id. */
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
