import { Entity, Index, PrimaryColumn } from 'typeorm';

/** A token or refresh family whose end also ends the links of a redemption (protocol §3.10). */
@Entity('link_ancestor')
export class LinkAncestor {
  @PrimaryColumn('varchar', { length: 36 })
  redemption: string;

  /** A `jti` or the id of a refresh family, or the id of the redemption itself. */
  @Index('link_ancestor_ancestor_id')
  @PrimaryColumn('varchar', { name: 'ancestor_id', length: 128 })
  ancestorId: string;
}
