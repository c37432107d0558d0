import type { Type } from '@nestjs/common';
import type { ObjectLiteral } from 'typeorm';

/** What the editor, the lists and the registry file, which handle all kinds of entries, know of one kind. */
export interface EntryKind<Fields extends object = object, Row extends ObjectLiteral = ObjectLiteral> {
  /** In the audit. With an `s` it is the name of the list in the registry file and in responses. */
  readonly name: 'organization' | 'client' | 'resource_server' | 'agent';
  readonly entry: Type<Fields>;
  readonly entity: Type<Row>;
  /** How the admin API identifies an entry. */
  readonly key: FieldAndColumn;
  /** How the registry file identifies an entry, if not by `key`. The service then generates the `key`. */
  readonly fileKey?: FieldAndColumn;
  /** Only its hash is stored, and no response has it. The registry file may name a file instead: `FIELD_file`. */
  readonly secret?: SecretField<Row>;
  /** The agent that an entry names by its email. The row has the agent's id, and the relation of the field's name. */
  readonly reference?: FieldAndColumn;
  /**
   * All columns of the fields, except the secret and the reference. `stored` is the row that a PUT or the registry file
   * replaces. Its values of some fields stay if the entry omits them.
   */
  toColumns(entry: Fields, stored?: Row): Partial<Row>;
  /** An entry in the form of the registry file, without its secret. */
  toEntry(row: Row): object;
}

interface FieldAndColumn {
  readonly field: string;
  readonly column: string;
}

interface SecretField<Row> extends FieldAndColumn {
  /** An entry without keys needs one. */
  readonly isRequired: boolean;
  /** The columns of an entry without a secret. */
  readonly removed: Partial<Row>;
  /** The columns of the secret. A secret that is the stored one has its hash. */
  columnsOf(secret: string, stored?: Row): Promise<Partial<Row>>;
}

/** In messages: `resource server`. */
export const nounOf = ({ name }: Pick<EntryKind, 'name'>): string => name.replace('_', ' ');

/** What `find` also reads of a row for `toEntry`. */
export const relationsOf = ({ reference }: EntryKind): object => (reference ? { [reference.field]: true } : {});

export const listOf = ({ name }: Pick<EntryKind, 'name'>): string => `${name}s`;

export const fileKeyOf = ({ key, fileKey = key }: EntryKind) => fileKey;
