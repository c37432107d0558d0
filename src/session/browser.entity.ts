import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A browser that the service has given identity cookies. Its sessions lead it to customers. */
@Entity('browser')
export class Browser {
  /** A UUIDv7. The cookie with the secret begins with it. */
  @PrimaryColumn('varchar', { name: 'browser_id', length: 36 })
  browserId!: string;

  /** SHA-256 of the secret. */
  @Column('varchar', { name: 'secret_hash', length: 64 })
  secretHash!: string;

  /** Rises in each transaction that adds a session to the browser, or lets it lead to fewer customers. */
  @Column('integer')
  version!: number;
}
