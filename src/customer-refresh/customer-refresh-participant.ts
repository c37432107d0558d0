import { Injectable } from '@nestjs/common';
import {
  type CustomerDataParticipant,
  CustomerDataParticipants,
  type ExportedRows,
} from '../identity/customer-data-participants.js';
import type { RefreshFamilyRecord } from '../identity/refresh-family-record.js';
import { CustomerFamilies } from '../refresh-token/customer-families.js';

/** Deletes the refresh families of erased customers, and retains the customers that a family leads to. */
@Injectable()
export class CustomerRefreshParticipant implements CustomerDataParticipant {
  constructor(
    private readonly families: CustomerFamilies,
    participants: CustomerDataParticipants,
  ) {
    participants.add(this);
  }

  onErase(entityId: string): Promise<void> {
    return this.families.deleteAll(entityId);
  }

  mustRetain(entityIds: string[]): Promise<string[]> {
    return this.families.withFamily(entityIds);
  }

  async linkedIds(): Promise<string[]> {
    return [];
  }

  exportRows(entityId: string): Promise<ExportedRows> {
    return this.families.rows(entityId);
  }

  async refreshFamilies(entityId: string): Promise<RefreshFamilyRecord[]> {
    const families = await this.families.list(entityId);
    return families.map(({ id, clientId, lastUsedAt, expiresAt }) => ({
      id,
      client_id: clientId,
      last_used_at: new Date(lastUsedAt).toISOString(),
      expires_at: new Date(expiresAt).toISOString(),
    }));
  }
}
