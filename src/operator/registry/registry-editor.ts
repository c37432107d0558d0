import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager, ObjectLiteral } from 'typeorm';
import { OAuthError } from '../../oauth/oauth-error.js';
import type { AuditParty } from '../../platform/audit/audit-event.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { isDuplicate } from '../../platform/database/database-errors.js';
import { randomSecret, sha256 } from '../../platform/secret.js';
import { UUID } from '../../platform/uuid.js';
import { UUID_RULE } from '../../platform/validation/text-rules.js';
import { prototypeKeyViolations, UNKNOWN_FIELD } from '../../platform/validation/violations.js';
import { CLIENTS } from '../../registry/entries/client.entry.js';
import { type EntryKind, fileKeyOf, nounOf, relationsOf } from '../../registry/entries/entry-kind.js';
import { ORGANIZATIONS } from '../../registry/entries/organization.entry.js';
import { withNewSecret } from '../../registry/previous-secrets.js';
import { type Entry, isMapping, ListedEntries, secretColumns } from './entry.js';
import { changeOf, type EntryChange } from './entry-change.js';
import { EntryChecks, hasSecret } from './entry-checks.js';
import { RegistryTransactions } from './registry-transactions.js';
import { deletedKeys, StoredEntries, whenFree } from './stored-entries.js';

/** Merges a patch (RFC 7396 §2). */
export function mergePatched(target: unknown, patch: unknown): unknown {
  if (!isMapping(patch)) return patch;
  const fields = isMapping(target) ? target : {};
  const names = [...new Set([...Object.keys(fields), ...Object.keys(patch)])];
  // Object.fromEntries defines a field named __proto__ as a field; an assignment would set the prototype
  return Object.fromEntries(
    names.flatMap((name) => {
      if (!Object.hasOwn(patch, name)) return [[name, fields[name]]];
      const targetValue = Object.hasOwn(fields, name) ? fields[name] : undefined;
      return patch[name] === null ? [] : [[name, mergePatched(targetValue, patch[name])]];
    }),
  );
}

/** Changes run one at a time, so one may wait. Shorter than the time of the response (admin-controller.ts). */
export const OPERATOR_TIMEOUT_MS = 8_000;

const ERRORS = {
  exists: ({ key }: EntryKind) => OAuthError.conflict(`${key.field}: already exists`),
  belongsToAnother: (kind: EntryKind) =>
    OAuthError.conflict(`${fileKeyOf(kind).field}: belongs to another ${nounOf(kind)}`),
  offboarding: () => OAuthError.conflict('id: the organization is being off-boarded; cancel that first'),
  fixedKey: ({ key }: EntryKind) => OAuthError.invalidRequest(`${key.field}: cannot be changed`),
  changedSince: () => OAuthError.preconditionFailed(),
  noServer: () => OAuthError.invalidRequest('client_id: a client without a secret, and its client_type is not server'),
};

/** An entry of a request, and its violations. */
interface ParsedEntry {
  entry: Entry;
  entries: ListedEntries;
}

interface Change {
  actor: AuditParty;
  /** The value of `If-Match`. */
  ifMatch?: string | undefined;
}

@Injectable()
export class RegistryEditor {
  constructor(
    private readonly database: Database,
    private readonly transactions: RegistryTransactions,
    private readonly checks: EntryChecks,
    private readonly clock: Clock,
  ) {}

  /** @throws OAuthError `not_found` */
  async read<Row extends ObjectLiteral>(
    kind: EntryKind<object, Row>,
    key: string,
  ): Promise<{ row: Row; etag: string }> {
    const row = await rowOf<Row>(this.database.manager, kind, key);
    if (!row) throw OAuthError.notFound();
    return { row, etag: etagOf(row) };
  }

  /** Returns the key. @throws OAuthError `invalid_request`, `conflict` if another entry has this key or email */
  async create(kind: EntryKind, body: Entry, actor: AuditParty): Promise<string> {
    const newEntry = parseEntry(kind, mergePatched({}, body));
    const key = kind.fileKey ? randomUUID() : String(newEntry.entry[kind.key.field]);
    // before the transaction, because hashing a password is slow and other writers would wait
    const secret = await secretOf(kind, newEntry);
    await this.transact(actor, (manager) => this.creation(manager, kind, key, newEntry, secret));
    return key;
  }

  /**
   * Creates the entry, or replaces its fields. Nothing is written if nothing changes.
   *
   * @returns whether the entry is new
   * @throws OAuthError `invalid_request`, `conflict`, `precondition_failed`
   */
  async put(kind: EntryKind, key: string, body: Entry, { actor, ifMatch }: Change): Promise<boolean> {
    const { column, field } = kind.key;
    const isGenerated = kind.fileKey !== undefined;
    if (isGenerated && !UUID.test(key)) throw OAuthError.invalidRequest(`${field}: ${UUID_RULE}`);
    if (!isGenerated && (body[field] ?? key) !== key) throw ERRORS.fixedKey(kind);
    const newEntry = parseEntry(kind, mergePatched({}, isGenerated ? body : { ...body, [field]: key }));
    const before = await this.database.manager.findOneBy(kind.entity, { [column]: key });
    const secret = await secretOf(kind, newEntry, before);
    let isNew = false;
    await this.transact(actor, async (manager) => {
      const row = await rowOf(manager, kind, key);
      isNew = row === undefined;
      assertMatches(ifMatch, row);
      if (!row) return this.creation(manager, kind, key, newEntry, secret);
      return this.replacement(manager, kind, row, newEntry, secret, () => kind.toColumns(newEntry.entry, row));
    });
    return isNew;
  }

  /** RFC 7396. @throws OAuthError `not_found`, `conflict`, `invalid_request`, `precondition_failed` */
  async change(kind: EntryKind, key: string, patch: Entry, { actor, ifMatch }: Change): Promise<void> {
    const { secret } = kind;
    const { field } = kind.key;
    const removesSecret = secret !== undefined && patch[secret.field] === null;
    const before = await this.database.manager.findOneBy(kind.entity, { [kind.key.column]: key });
    const newSecret = removesSecret ? secret.removed : await secretColumns(kind, patch, before);
    await this.transact(actor, async (manager) => {
      const row = await existingRow(manager, kind, key, ifMatch);
      if (!kind.fileKey && ![undefined, key].includes(patch[field] as string)) throw ERRORS.fixedKey(kind);
      const newEntry = parseEntry(kind, mergePatched(kind.toEntry(row), patch));
      return this.replacement(manager, kind, row, newEntry, newSecret, () => kind.toColumns(newEntry.entry));
    });
  }

  /** Not for an organization, which is off-boarded. @throws OAuthError `not_found`, `precondition_failed` */
  async delete(kind: EntryKind, key: string, { actor, ifMatch }: Change): Promise<void> {
    await this.transact(actor, async (manager) => {
      await existingRow(manager, kind, key, ifMatch);
      return { kind, key, change: 'deleted' };
    });
  }

  /**
   * Only a client of type `server` may get its first secret: the installed copies of another client have none, and
   * would be rejected. @throws OAuthError `not_found`; `conflict` if too many replaced secrets are
   * still valid; `invalid_request` for the first secret of a client that is no server
   */
  async renewSecret(
    clientId: string,
    oldValidForSeconds: number,
    actor: AuditParty,
  ): Promise<{ secret: string; isFirst: boolean }> {
    const secret = randomSecret('base64url');
    let isFirst = false;
    await this.transact(actor, async (manager) => {
      const client = await existingRow(manager, CLIENTS, clientId);
      isFirst = client.secretHash === null;
      if (isFirst && client.clientType !== 'server') throw ERRORS.noServer();
      const columns = withNewSecret(client, sha256(secret), this.clock.now(), oldValidForSeconds);
      return { kind: CLIENTS, key: clientId, change: 'changed', columns, fields: ['client_secret'] };
    });
    return { secret, isFirst };
  }

  /** @throws OAuthError `invalid_request`, `conflict` if the key exists, or belonged to a deleted entry */
  private async creation(
    manager: EntityManager,
    kind: EntryKind,
    key: string,
    newEntry: ParsedEntry,
    secret: ObjectLiteral,
  ): Promise<EntryChange> {
    const { column, field } = kind.key;
    const stored = await this.storedEntries(manager, kind, newEntry, {});
    const other = stored.rowOf(kind, newEntry.entry);
    if (other) throw other[column] === key ? ERRORS.exists(kind) : ERRORS.belongsToAnother(kind);
    if ((await deletedKeys(manager, kind, { [column]: key })).has(key))
      throw OAuthError.conflict(`${field}: ${key} was deleted, and ${whenFree(kind)}`);
    const columns = {
      ...{ ...kind.secret?.removed, ...kind.toColumns(newEntry.entry), ...secret },
      ...{ ...stored.referenceColumns(kind, newEntry.entry), [column]: key, fromFile: false },
    };
    return { kind, key, change: 'created', columns };
  }

  /**
   * @param toColumns is called with a valid entry only
   * @throws OAuthError `invalid_request`, `conflict` for the email of another entry, or an organization that is off-boarded
   */
  private async replacement(
    manager: EntityManager,
    kind: EntryKind,
    row: ObjectLiteral,
    newEntry: ParsedEntry,
    secret: ObjectLiteral,
    toColumns: () => ObjectLiteral,
  ): Promise<EntryChange | undefined> {
    const { column } = kind.key;
    const stored = await this.storedEntries(manager, kind, newEntry, { ...row, ...secret });
    const other = stored.rowOf(kind, newEntry.entry);
    if (other && other[column] !== row[column]) throw ERRORS.belongsToAnother(kind);
    const change = changeOf(kind, { ...toColumns(), ...secret, ...stored.referenceColumns(kind, newEntry.entry) }, row);
    if (change && kind === ORGANIZATIONS && row.offboardingAt !== null) throw ERRORS.offboarding();
    return change;
  }

  /** What is stored with the keys and emails of the entry. @throws OAuthError `invalid_request` if the entry is not valid */
  private async storedEntries(
    manager: EntityManager,
    kind: EntryKind,
    { entries }: ParsedEntry,
    columns: ObjectLiteral,
  ): Promise<StoredEntries> {
    const stored = await StoredEntries.read(manager, entries);
    const violations = await this.checks.violations(manager, entries, stored, () => hasSecret(kind, columns));
    if (violations.length > 0) throw invalidEntry(violations);
    return stored;
  }

  /** @throws OAuthError of `work`; `conflict` if another entry already has the key */
  private async transact(
    actor: AuditParty,
    work: (manager: EntityManager) => Promise<EntryChange | undefined>,
  ): Promise<void> {
    const changes = async (manager: EntityManager) => {
      const change = await work(manager);
      return change ? [change] : [];
    };
    try {
      await this.transactions.run(actor, changes, { timeoutMs: OPERATOR_TIMEOUT_MS });
    } catch (error) {
      throw isDuplicate(error) ? OAuthError.conflict('the entry already exists') : error;
    }
  }
}

/** Nothing but the fields of the class, whose values may be invalid. @throws OAuthError for the key of a prototype */
function parseEntry(kind: EntryKind, fields: unknown): ParsedEntry {
  const prototypeKeys = prototypeKeyViolations(fields);
  if (prototypeKeys.length > 0) throw invalidEntry(prototypeKeys);
  const entries = new ListedEntries();
  return { entry: entries.add(kind, '', fields), entries };
}

/** Names all violations, one on each line. */
function invalidEntry(violations: string[]): OAuthError {
  // the caller chooses the name of an unknown field, and texts of callers are not logged
  const reason = violations.some((violation) => violation.endsWith(UNKNOWN_FIELD)) ? 'an unknown field' : undefined;
  return OAuthError.invalidRequest([...new Set(violations)].join('\n'), reason);
}

async function secretOf(kind: EntryKind, { entry, entries }: ParsedEntry, before?: ObjectLiteral | null) {
  return entries.violations.length > 0 ? {} : secretColumns(kind, entry, before);
}

/** RFC 9110 §8.8.3. Each change of an entry gives its row a new revision. */
function etagOf({ revision }: ObjectLiteral): string {
  return `"${revision}"`;
}

/** RFC 9110 §13.1.1. @throws OAuthError `precondition_failed` */
function assertMatches(ifMatch: string | undefined, row: ObjectLiteral | undefined): void {
  if (ifMatch === undefined) return;
  const etags = ifMatch.split(',').map((etag) => etag.trim());
  if (!row || !(etags.includes('*') || etags.includes(etagOf(row)))) throw ERRORS.changedSince();
}

/**
 * An organization that is being erased has a row until the end. MySQL ignores spaces at the end of a key, so the row that
 * was found may have another key.
 */
async function rowOf<Row extends ObjectLiteral = ObjectLiteral>(
  manager: EntityManager,
  kind: EntryKind<object, Row>,
  key: string,
): Promise<Row | undefined> {
  const { name, entity } = kind;
  const { column } = kind.key;
  const where: object = { [column]: key };
  const options = { where, relations: relationsOf(kind), withDeleted: name === ORGANIZATIONS.name };
  const [row] = await manager.find<Row>(entity, options);
  return row?.[column] === key ? row : undefined;
}

/** @throws OAuthError `not_found`, `precondition_failed` */
export async function existingRow<Row extends ObjectLiteral = ObjectLiteral>(
  manager: EntityManager,
  kind: EntryKind<object, Row>,
  key: string,
  ifMatch?: string,
): Promise<Row> {
  const row = await rowOf(manager, kind, key);
  if (!row) throw OAuthError.notFound();
  assertMatches(ifMatch, row);
  return row;
}
