import {
  type CustomerDataParticipant,
  Database,
  type EntityRow,
  type ExportedRows,
  selectStatement,
  writeStatement,
} from '@customer-authorization/service/grant';
import { Injectable } from '@nestjs/common';
import type { DeviceApproval } from './device-approval.entity.js';

const DELETE = writeStatement<[entityId: string]>('DELETE FROM device_approval WHERE entity_id = ?');

const FIND_OF_CUSTOMER = selectStatement<
  [entityId: string],
  EntityRow<DeviceApproval, 'client_id' | 'is_approved' | 'expires_at'>
>('SELECT client_id, is_approved, expires_at FROM device_approval WHERE entity_id = ?');

/** Deletes and exports the decisions of a customer. */
@Injectable()
export class DeviceApprovalParticipant implements CustomerDataParticipant {
  constructor(private readonly database: Database) {}

  async onErase(entityId: string): Promise<void> {
    await this.database.execute(DELETE, [entityId]);
  }

  async exportRows(entityId: string): Promise<ExportedRows> {
    return { device_approval: await this.database.select(FIND_OF_CUSTOMER, [entityId]) };
  }
}
