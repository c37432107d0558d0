import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * A single row that counts the changes of the registry. A process reads the registry again only if the number has
 * changed.
 */
@Entity('registry_revision')
export class RegistryRevision {
  @PrimaryColumn('integer')
  id: number;

  @Column('integer')
  revision: number;
}
