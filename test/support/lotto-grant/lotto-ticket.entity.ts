import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A ticket that has won. The primary key admits one row for a ticket, even if several requests insert it at once. */
@Entity('lotto_ticket')
export class LottoTicket {
  /** The client of the draw. */
  @PrimaryColumn('varchar', { name: 'client_id', length: 128 })
  clientId!: string;

  @PrimaryColumn('varchar', { length: 6 })
  ticket!: string;

  @Column('datetime', { name: 'won_at', precision: 3 })
  wonAt!: Date;
}
