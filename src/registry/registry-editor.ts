import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager, ObjectLiteral } from 'typeorm';
import type { AuditParty } from '../audit/audit-event.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { isDuplicate } from '../platform/database/database-errors.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { prototypeKeyViolations } from '../platform/validation-violations.js';
import type { ClientApplication } from './client-application.entity.js';
import { type Entry, isMapping, secretColumns, toResponse, validated } from './entry.js';
import { changeOf } from './entry-change.js';
import {
  alreadyExists,
  assertConsistent,
  assertNotReferenced,
  belongsToAnother,
  invalidEntry,
  type ParsedEntry,
  stillReferenced,
} from './entry-checks.js';
import { GrantSettingsClasses } from './grant-settings-classes.js';
import { tooManySecrets, withNewSecret } from './previous-secrets.js';
import { type EntryChange, RegistryTransactions } from './registry-transactions.js';
import { clientResource } from './resources/client.resource.js';
import type { RegistryResource } from './resources/registry-resource.js';
import { REGISTRY_RESOURCES } from './resources/registry-resources.js';

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
const OPERATOR_TIMEOUT_MS = 8_000;

export const EDITOR_ERRORS = {
  exists: alreadyExists,
  belongsToAnother,
  stillReferenced,
  tooManySecrets,
  fixedKey: ({ key }: RegistryResource) => OAuthError.invalidRequest(`${key.field}: cannot be changed`),
  changedSince: () => OAuthError.preconditionFailed(),
  noServer: () => OAuthError.invalidRequest('client_id: a client without a secret, and its client_type is not server'),
};

/** A version 4, or another UUID that a caller has chosen. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface StoredEntry {
  entry: Entry;
  etag: string;
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
    private readonly settingsClasses: GrantSettingsClasses,
    private readonly clock: Clock,
  ) {}

  /** @throws OAuthError `not_found` */
  async read(resource: RegistryResource, key: string): Promise<StoredEntry> {
    const [row] = await this.database.manager.find(resource.entity, { where: { [resource.key.column]: key } });
    if (row?.[resource.key.column] !== key) throw OAuthError.notFound();
    return { entry: toResponse(resource, row, this.clock.now()), etag: etagOf(row) };
  }

  /** Returns the key. @throws OAuthError `invalid_request`, `conflict` if another entry has this key or email */
  async create(resource: RegistryResource, body: Entry, actor: AuditParty): Promise<string> {
    const { field, isGenerated } = resource.key;
    const newEntry = parseEntry(resource, mergePatched({}, body));
    const key = isGenerated ? randomUUID() : String(newEntry.entry[field]);
    // before the transaction, because hashing a password is slow and other writers would wait
    const secret = newEntry.violations.length > 0 ? {} : await secretColumns(resource, newEntry.entry);
    await this.transact(actor, (manager) => this.creation(manager, resource, key, newEntry, secret));
    return key;
  }

  /**
   * Creates the entry, or replaces its fields. A secret, and a field that the resource retains, stay if the body omits
   * them. Nothing is written if nothing changes.
   *
   * @returns whether the entry is new
   * @throws OAuthError `invalid_request`, `conflict`, `precondition_failed`
   */
  async put(resource: RegistryResource, key: string, body: Entry, { actor, ifMatch }: Change): Promise<boolean> {
    const { column, field, isGenerated } = resource.key;
    if (isGenerated && !UUID.test(key)) throw OAuthError.invalidRequest(`${field}: must be a UUID in lower case`);
    if (!isGenerated && (body[field] ?? key) !== key) throw EDITOR_ERRORS.fixedKey(resource);
    const newEntry = parseEntry(resource, mergePatched({}, isGenerated ? body : { ...body, [field]: key }));
    const [before] = await this.database.manager.find(resource.entity, { where: { [column]: key } });
    const secret = newEntry.violations.length > 0 ? {} : await secretColumns(resource, newEntry.entry, before);
    let isNew = false;
    await this.transact(actor, async (manager) => {
      const row = await rowOf(manager, resource, key);
      isNew = row === undefined;
      assertMatches(ifMatch, row);
      if (!row) return this.creation(manager, resource, key, newEntry, secret);
      await assertConsistent(manager, resource, [key, newEntry], this.settingsClasses, true);
      return changeOf(resource, resource.toRow(newEntry.entry, secret), row);
    });
    return isNew;
  }

  /** RFC 7396. @throws OAuthError `not_found`, `conflict`, `invalid_request`, `precondition_failed` */
  async change(resource: RegistryResource, key: string, patch: Entry, { actor, ifMatch }: Change): Promise<void> {
    const { tokensEndWith = {}, retainedFields = {} } = resource;
    const { field, isGenerated } = resource.key;
    assertSecretsStay(patch);
    const secret = await secretColumns(resource, patch);
    const fields = Object.keys(patch);
    // a patch that names a field ends the tokens, even with the stored value; the file compares the values
    const endsTokens = Object.keys(tokensEndWith).some((name) => name in patch);
    await this.transact(actor, async (manager) => {
      const row = await existingRow(manager, resource, key, ifMatch);
      if (!isGenerated && patch[field] !== undefined && patch[field] !== key) throw EDITOR_ERRORS.fixedKey(resource);
      const newEntry = parseEntry(resource, mergePatched(resource.toEntry(row), patch));
      await assertConsistent(manager, resource, [key, newEntry], this.settingsClasses, true);
      // an entry without a retained field would not reset the columns of the field
      const removed = Object.entries(retainedFields).filter(([name]) => patch[name] === null);
      const columns = Object.assign(resource.toRow(newEntry.entry, secret), ...removed.map(([, reset]) => reset));
      return { resource, key, change: 'changed', columns, fields, endsTokens };
    });
  }

  /** @throws OAuthError `not_found`, `conflict` if another entry refers to the entry, `precondition_failed` */
  async delete(resource: RegistryResource, key: string, { actor, ifMatch }: Change): Promise<void> {
    await this.transact(actor, async (manager) => {
      await existingRow(manager, resource, key, ifMatch);
      await assertNotReferenced(manager, resource, key);
      return { resource, key, change: 'deleted', endsTokens: true };
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
      const client = await existingRow<ClientApplication>(manager, clientResource, clientId);
      isFirst = client.secretHash === null;
      if (isFirst && client.clientType !== 'server') throw EDITOR_ERRORS.noServer();
      const columns = withNewSecret(client, sha256(secret), this.clock.now(), oldValidForSeconds);
      return { resource: clientResource, key: clientId, change: 'changed', columns, fields: ['client_secret'] };
    });
    return { secret, isFirst };
  }

  private async creation(
    manager: EntityManager,
    resource: RegistryResource,
    key: string,
    newEntry: ParsedEntry,
    secret: ObjectLiteral,
  ): Promise<EntryChange> {
    await assertConsistent(manager, resource, [key, newEntry], this.settingsClasses, false);
    const columns = { [resource.key.column]: key, ...resource.toRow(newEntry.entry, secret), fromFile: false };
    return { resource, key, change: 'created', columns };
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
      await this.transactions.run(actor, changes, OPERATOR_TIMEOUT_MS);
    } catch (error) {
      throw isDuplicate(error) ? OAuthError.conflict('the entry already exists') : error;
    }
  }
}

/** Nothing but the fields of the class, whose values may be invalid. @throws OAuthError for the key of a prototype */
function parseEntry({ entry: type }: RegistryResource, value: unknown): ParsedEntry {
  const prototypeKeys = prototypeKeyViolations(value);
  if (prototypeKeys.length > 0) throw invalidEntry(prototypeKeys);
  const [parsed, violations] = validated(type, value);
  return { entry: { ...parsed }, violations };
}

/** RFC 9110 §8.8.3. Each change of an entry gives its row a new revision. */
function etagOf({ revision }: ObjectLiteral): string {
  return `"${revision}"`;
}

/** RFC 9110 §13.1.1. @throws OAuthError `precondition_failed` */
function assertMatches(ifMatch: string | undefined, row: ObjectLiteral | undefined): void {
  if (ifMatch === undefined) return;
  const etags = ifMatch.split(',').map((etag) => etag.trim());
  if (!row || !(etags.includes('*') || etags.includes(etagOf(row)))) throw EDITOR_ERRORS.changedSince();
}

/** MySQL ignores spaces at the end of a key, so the row that was found may have another key. */
async function rowOf(manager: EntityManager, { entity, key: { column } }: RegistryResource, key: string) {
  const [row] = await manager.findBy<ObjectLiteral>(entity, { [column]: key });
  return row?.[column] === key ? row : undefined;
}

/** @throws OAuthError `not_found`, `precondition_failed` */
async function existingRow<Row extends ObjectLiteral = ObjectLiteral>(
  manager: EntityManager,
  resource: RegistryResource,
  key: string,
  ifMatch?: string,
): Promise<Row> {
  const row = await rowOf(manager, resource, key);
  if (!row) throw OAuthError.notFound();
  assertMatches(ifMatch, row);
  return row as Row;
}

/** @throws OAuthError `invalid_request` for the removal of a required secret of any resource */
function assertSecretsStay(patch: Entry): void {
  const required = REGISTRY_RESOURCES.flatMap(({ secret }) => (secret?.isRequired ? [secret.field] : [])).sort();
  const removed = required.find((field) => patch[field] === null);
  if (removed !== undefined) throw OAuthError.invalidRequest(`${removed}: cannot be removed`);
}
