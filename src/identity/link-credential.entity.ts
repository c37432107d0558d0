import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { sha256 } from '../platform/secret.js';

/**
 * A cookie pair whose id is not in a row of its browser. The row has a hash of the id and the secret, and nothing of
 * the customer. So the pair works for the browser's other customers after the customer was erased.
 */
@Entity('link_credential')
export class LinkCredential {
  /** SHA-256 of the `entity_id` and the browser's secret. */
  @PrimaryColumn('varchar', { length: 64 })
  hash: string;

  @Index('link_credential_browser_id')
  @Column('varchar', { name: 'browser_id', length: 36 })
  browserId: string;
}

/** The `hash` of a cookie pair. Both values have a fixed length, so different pairs have different texts. */
export function credentialHash(entityId: string, secret: string): string {
  return sha256(`${entityId}:${secret}`);
}
