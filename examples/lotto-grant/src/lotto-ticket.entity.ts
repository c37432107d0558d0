import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A ticket that has won. The key makes it one row, whoever comes at once. */
@Entity('lotto_ticket')
export class LottoTicket {
  /** The client whose draw it was. */
  @PrimaryColumn('varchar', { name: 'client_id', length: 128 })
  clientId: string;

  @PrimaryColumn('varchar', { length: 6 })
  ticket: string;

  @Column('datetime', { name: 'won_at', precision: 3 })
  wonAt: Date;
}
