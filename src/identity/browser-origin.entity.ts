import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** The earlier browser that a browser was made from by `remember`. Forgetting acts on both (protocol §4.13). */
@Entity('browser_origin')
export class BrowserOrigin {
  @PrimaryColumn('varchar', { name: 'browser_id', length: 36 })
  browserId: string;

  @Index('browser_origin_made_from')
  @Column('varchar', { name: 'made_from', length: 36 })
  madeFrom: string;
}
