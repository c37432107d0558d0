import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A browser that the service has given identity cookies. */
@Entity('browser')
export class KnownBrowser {
  /** A UUIDv7. The cookie with the secret begins with it. */
  @PrimaryColumn('varchar', { name: 'browser_id', length: 36 })
  browserId!: string;

  /** SHA-256 of the secret; empty if the secret was removed. No secret has the empty hash. */
  @Column('varchar', { name: 'secret_hash', length: 64 })
  secretHash!: string;

  /** Rises in each transaction that decides by the links of the browser. */
  @Column('integer')
  version!: number;
}
