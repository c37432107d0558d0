import { Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A token or refresh family with which a customer's family ends (protocol §3.10). The purge deletes the family before
 * it deletes the revocation of the ancestor. Requests read `RefreshFamily.lineage` instead.
 */
@Entity('refresh_family_ancestor')
export class RefreshFamilyAncestor {
  @PrimaryColumn('varchar', { name: 'family_id', length: 36 })
  familyId: string;

  /** A `jti` or the id of a refresh family. */
  @Index('refresh_family_ancestor_ancestor_id')
  @PrimaryColumn('varchar', { name: 'ancestor_id', length: 128 })
  ancestorId: string;
}
