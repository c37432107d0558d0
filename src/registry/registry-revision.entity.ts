import { Column, Entity, PrimaryColumn } from 'typeorm';

/** One row that counts the changes of the registry, so that every process can tell cheaply whether to read it again. */
@Entity('registry_revision')
export class RegistryRevision {
  @PrimaryColumn('integer')
  id: number;

  @Column('integer')
  revision: number;
}
