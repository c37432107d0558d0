import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * A single row that counts the changes of the registry. A process polls the number, and reads the changed entries
 * (`registry_change`) only if it has changed.
 */
@Entity('registry_revision')
export class RegistryRevision {
  @PrimaryColumn('integer')
  id: number;

  @Column('integer')
  revision: number;
}
