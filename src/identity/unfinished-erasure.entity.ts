import { Entity, PrimaryColumn } from 'typeorm';

/** An erased customer about which other tables may still have data. The row is deleted when they have none. */
@Entity('unfinished_erasure')
export class UnfinishedErasure {
  @PrimaryColumn('varchar', { name: 'entity_id', length: 36 })
  entityId: string;
}
