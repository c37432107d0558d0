import { Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A token or refresh family with which a link from a transfer ends (protocol §3.10). Before the purge deletes the
 * revocation of an ancestor, it finds the links that the revocation has ended by these rows.
 */
@Entity('link_ancestor')
export class LinkAncestor {
  @PrimaryColumn('varchar', { name: 'entity_id', length: 36 })
  entityId: string;

  @PrimaryColumn('varchar', { name: 'browser_id', length: 36 })
  browserId: string;

  /** A `jti`, the id of a refresh family, or the id of the redemption that gave the link. */
  @Index('link_ancestor_ancestor_id')
  @PrimaryColumn('varchar', { name: 'ancestor_id', length: 128 })
  ancestorId: string;
}
