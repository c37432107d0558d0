import {
  Clock,
  type CustomerPrincipal,
  Database,
  type EntityRow,
  insertStatement,
  randomSecret,
  selectStatement,
  sha256,
  writeStatement,
} from '@customer-authorization/service/grant';
import { Injectable } from '@nestjs/common';
import { DeviceApproval } from './device-approval.entity.js';
import type { StartResponse } from './start.response.js';
import { newUserCode, normalizedUserCode } from './user-code.js';

/** The lifetime of the codes. */
export const LIFETIME_SECONDS = 600;
/** The shortest time between two polls of a device. */
export const INTERVAL_SECONDS = 5;

const INSERT = insertStatement({
  into: DeviceApproval,
  columns: ['device_code_hash', 'user_code_hash', 'client_id', 'organization_id', 'is_approved', 'expires_at'],
});

/** The first decision counts, and only that of a customer of the same organization. */
const DECIDE = writeStatement<
  [entityId: string, proof: string | null, isApproved: boolean, userCodeHash: string, organizationId: string, now: Date]
>(`UPDATE device_approval SET entity_id = ?, proof = ?, is_approved = ?
  WHERE user_code_hash = ? AND organization_id = ? AND entity_id IS NULL AND expires_at > ?`);

const FIND_WAITING = selectStatement<[userCodeHash: string, organizationId: string, now: Date], { is_waiting: number }>(
  `SELECT 1 AS is_waiting FROM device_approval
  WHERE user_code_hash = ? AND organization_id = ? AND entity_id IS NULL AND expires_at > ?`,
);

const FIND = selectStatement<[now: Date, deviceCodeHash: string, clientId: string], StoredApproval>(
  `SELECT organization_id, entity_id, proof, is_approved, (expires_at <= ?) AS is_expired
  FROM device_approval WHERE device_code_hash = ? AND client_id = ?`,
);

const NOTE_POLL = writeStatement<[now: Date, deviceCodeHash: string, before: Date]>(
  'UPDATE device_approval SET polled_at = ? WHERE device_code_hash = ? AND (polled_at IS NULL OR polled_at <= ?)',
);

const REDEEM = writeStatement<[deviceCodeHash: string, isApproved: boolean]>(
  'DELETE FROM device_approval WHERE device_code_hash = ? AND is_approved = ?',
);

type StoredApproval = EntityRow<DeviceApproval, 'organization_id' | 'entity_id' | 'proof' | 'is_approved'> & {
  is_expired: number;
};

/** The new devices that wait for an approval. Each change is one statement with its own condition. */
@Injectable()
export class DeviceApprovals {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  async start(clientId: string, organizationId: string): Promise<StartResponse> {
    const [device_code, user_code] = [randomSecret('base64url'), newUserCode()];
    const expiresAt = new Date(this.clock.now() + LIFETIME_SECONDS * 1000);
    const hashes = [sha256(device_code), sha256(user_code)] as const;
    await this.database.insert(INSERT, [...hashes, clientId, organizationId, false, expiresAt]);
    return { device_code, user_code, expires_in: LIFETIME_SECONDS, interval: INTERVAL_SECONDS };
  }

  /** Resolves to `false` if no device of the customer's organization waits with this code. */
  async decide(customer: CustomerPrincipal, userCode: string, isApproved: boolean): Promise<boolean> {
    const { entityId, organizationId } = customer;
    const hash = sha256(normalizedUserCode(userCode));
    const now = new Date(this.clock.now());
    const waiting = await this.database.select(FIND_WAITING, [hash, organizationId, now]);
    if (waiting.length === 0) return false; // without a proof, whose session would count in the bounds of the customer
    const proof = isApproved ? await customer.proof() : null;
    return (await this.database.execute(DECIDE, [entityId, proof, isApproved, hash, organizationId, now])) === 1;
  }

  async find(deviceCode: string, clientId: string): Promise<StoredApproval | undefined> {
    const now = new Date(this.clock.now());
    const [found] = await this.database.select(FIND, [now, sha256(deviceCode), clientId]);
    return found;
  }

  /** Resolves to `false` if the device polled less than the interval ago. */
  async notePoll(deviceCode: string): Promise<boolean> {
    const now = this.clock.now();
    const before = new Date(now - INTERVAL_SECONDS * 1000);
    return (await this.database.execute(NOTE_POLL, [new Date(now), sha256(deviceCode), before])) === 1;
  }

  /** Deletes an approved row. Resolves to `true` for one of several parallel requests. */
  async redeem(deviceCode: string): Promise<boolean> {
    return (await this.database.execute(REDEEM, [sha256(deviceCode), true])) === 1;
  }
}
