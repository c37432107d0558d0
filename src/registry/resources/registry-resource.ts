import type { Type } from '@nestjs/common';
import type { ObjectLiteral } from 'typeorm';
import type { AuditParty } from '../../audit/audit-event.js';
import { sha256 } from '../../platform/secret.js';
import { declaredProperties } from '../../platform/validation.js';
import { hashPassword, isPasswordOf } from '../agent-password.js';

export interface SecretKind {
  hash(secret: string): Promise<string>;
  matches(hash: string, secret: string): Promise<boolean>;
}

/** A fast hash is enough, because an attacker cannot guess the secret of a program. */
export const RANDOM_SECRET: SecretKind = {
  hash: async (secret) => sha256(secret),
  matches: async (hash, secret) => hash === sha256(secret),
};

export const PASSWORD: SecretKind = {
  hash: hashPassword,
  matches: (hash, password) => isPasswordOf(hash, password),
};

/** Columns of a row. A column that is `undefined` keeps its stored value. */
export type Columns<Row> = { [Column in keyof Row]?: Row[Column] | undefined };

interface FieldAndColumn<Field, Column> {
  field: Field;
  column: Column;
}

interface Description<Entry, Row, Field, Column> {
  /** The name of an entry in messages: `resource server`. */
  noun: string;
  entry: Type<Entry>;
  entity: Type<Row>;
  /** How the admin API identifies an entry: by a UUID that the service generates, or by a key of the caller's choice. */
  key: FieldAndColumn<Field | 'id', Column> & { isGenerated?: boolean };
  /** How the registry file identifies an entry; `key` if omitted. */
  fileKey?: FileKey<Field, Column>;
  grantSettings?: Field;
  grantTypes?: Field;
  /** Fields that have the key of an entry of another resource. */
  references?: (FieldAndColumn<Field, Column> & { resource: RegistryResource })[];
  /** Stored as a hash. The registry file may name a file instead (`FIELD_file`). */
  secret?: FieldAndColumn<Field, Column> & {
    kind: SecretKind;
    alsoSets?: Columns<Row>;
    /** A new entry needs one, and none can be removed. */
    isRequired: boolean;
  };
  /** Fields that keep their value if an entry omits them, with the columns of a new row and of a patch to `null`. */
  retainedFields?: { [Name in Field & string]?: Columns<Row> };
  /** A change of one ends the tokens of the entry, as its deletion does. Absent if the entry has no tokens. */
  tokensEndWith?: { [Name in Field & string]?: Column };
  /** Why the key of a deleted entry cannot be used again yet. If omitted, it can at once. */
  retainsKey?: string;
  /** Columns that are set when the tokens of an entry end. A function returns SQL. */
  columnsOnTokenEnd?: { [Name in Column & string]?: () => string };
  /** A warning about accepted entries of the file. `stored` is the row of the entry before the file is applied. */
  warning?: { appliesTo(entry: Entry, stored: Row | undefined): boolean; text: string };
  exampleFields?: (Field & string)[];
  exampleChange?: Field & string;
  /** Fields that only the responses of the admin API have, with their rules. No request may send them. */
  responseFields?: {
    rules: Record<string, PropertyDecorator>;
    /** @param now milliseconds since 1970 */
    of(row: Row, now: number): object;
  };
  /** By default, the column of each field has the name of the field in camel case, and NULL if it is omitted. */
  toRow?(entry: Entry): Columns<Row>;
  /** An entry in the form of the registry file, without its secret. By default the reverse of `toRow`. */
  toEntry?(row: Row): object;
}

interface FileKey<Field, Column> extends FieldAndColumn<Field, Column> {
  normalize?(key: string): string;
}

export interface RegistryResource extends Description<object, ObjectLiteral, string, string> {
  auditKind: AuditParty['kind'];
  /** The list in the registry file and in responses: `resource_servers`. */
  list: string;
  /** The path below `/admin/`: `resource-servers`. */
  path: string;
  fileKey: FileKey<string, string>;
  references: (FieldAndColumn<string, string> & { resource: RegistryResource })[];
  toRow(entry: object, secret?: Columns<ObjectLiteral>): Columns<ObjectLiteral>;
  toEntry(row: ObjectLiteral): object;
}

export function defineResource<Entry extends object, Row extends ObjectLiteral>(
  definition: Description<Entry, Row, keyof Entry & string, keyof Row & string>,
): RegistryResource {
  const { noun, key, fileKey = key } = definition;
  const auditKind = noun.replaceAll(' ', '_') as AuditParty['kind'];
  const names = { auditKind, list: `${auditKind}s`, path: `${noun.replaceAll(' ', '-')}s` };
  return { references: [], fileKey, ...names, ...mappingOf({ ...definition, fileKey }), ...definition };
}

const columnOf = (field: string) => field.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

function mappingOf({
  entry,
  fileKey,
  secret,
  retainedFields = {},
}: Pick<RegistryResource, 'entry' | 'fileKey' | 'secret' | 'retainedFields'>) {
  const fields = declaredProperties(entry);
  return {
    toRow(given: ObjectLiteral, secretColumns: ObjectLiteral = {}): ObjectLiteral {
      const row: ObjectLiteral = {};
      for (const field of fields) {
        if (field === secret?.field) Object.assign(row, secretColumns);
        else row[columnOf(field)] = given[field] ?? (Object.hasOwn(retainedFields, field) ? undefined : null);
      }
      return { ...row, [fileKey.column]: fileKeyOf({ fileKey }, given) };
    },
    toEntry(row: ObjectLiteral): object {
      const shown = fields.filter((field) => field !== secret?.field && row[columnOf(field)] !== null);
      return Object.fromEntries(shown.map((field) => [field, row[columnOf(field)]]));
    },
  };
}

/** The key by which the registry file identifies an entry; `undefined` if it is no string. */
export function fileKeyOf(
  { fileKey: { field, normalize } }: Pick<RegistryResource, 'fileKey'>,
  entry: ObjectLiteral,
): string | undefined {
  const key: unknown = entry[field];
  if (typeof key !== 'string') return undefined;
  return normalize ? normalize(key) : key;
}
