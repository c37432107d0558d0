import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager, ObjectLiteral } from 'typeorm';
import type { AuditParty } from '../audit/audit-event.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { isDuplicate } from '../platform/database/database-errors.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { prototypeKeyViolations, UNKNOWN_FIELD } from '../platform/validation-violations.js';
import type { ClientApplication } from './client-application.entity.js';
import { type Entry, isMapping, secretColumns, toResponse, validated } from './entry.js';
import {
  alreadyExists,
  assertConsistent,
  assertNotReferenced,
  belongsToAnother,
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
  noServer: () => OAuthError.invalidRequest('client_id: a client without a secret, and its client_type is not server'),
};

@Injectable()
export class RegistryEditor {
  constructor(
    private readonly database: Database,
    private readonly transactions: RegistryTransactions,
    private readonly settingsClasses: GrantSettingsClasses,
    private readonly clock: Clock,
  ) {}

  /** @throws OAuthError `not_found` */
  async read(resource: RegistryResource, key: string): Promise<Entry> {
    const [row] = await this.database.read(resource.entity, { where: { [resource.key.column]: key } });
    return toResponse(resource, existing(resource, row, key), this.clock.now());
  }

  /** Returns the key. @throws OAuthError `invalid_request`, `conflict` if another entry has this key or email */
  async create(resource: RegistryResource, newEntry: Entry, actor: AuditParty): Promise<string> {
    const { field, column, isGenerated } = resource.key;
    const entry = parseEntry(resource, mergePatched({}, newEntry));
    const key = isGenerated ? randomUUID() : String(entry[field]);
    // before the transaction, because hashing a password is slow and other writers would wait
    const secret = await secretColumns(resource, entry);
    await this.transact(actor, async (manager) => {
      await assertConsistent(manager, resource, [key, entry], this.settingsClasses, false);
      const columns = { [column]: key, ...resource.toRow(entry, secret), fromFile: false };
      return { resource, key, change: 'created', columns };
    });
    return key;
  }

  /** RFC 7396. @throws OAuthError `not_found`, `conflict` if another entry has the email, `invalid_request` */
  async change(resource: RegistryResource, key: string, patch: Entry, actor: AuditParty): Promise<void> {
    const { tokensEndWith = {}, retainedFields = {} } = resource;
    const { field, isGenerated } = resource.key;
    assertSecretsStay(patch);
    const secret = await secretColumns(resource, patch);
    const fields = Object.keys(patch);
    // a patch that names a field ends the tokens, even with the stored value; the file compares the values
    const endsTokens = Object.keys(tokensEndWith).some((name) => name in patch);
    await this.transact(actor, async (manager) => {
      const row = await existingRow(manager, resource, key);
      if (!isGenerated && patch[field] !== undefined && patch[field] !== key) throw EDITOR_ERRORS.fixedKey(resource);
      const entry = parseEntry(resource, mergePatched(resource.toEntry(row), patch));
      await assertConsistent(manager, resource, [key, entry], this.settingsClasses, true);
      // an entry without a retained field would not reset the columns of the field
      const removed = Object.entries(retainedFields).filter(([name]) => patch[name] === null);
      const columns = Object.assign(resource.toRow(entry, secret), ...removed.map(([, reset]) => reset));
      return { resource, key, change: 'changed', columns, fields, endsTokens };
    });
  }

  /** @throws OAuthError `not_found`, `conflict` if another entry refers to it */
  async delete(resource: RegistryResource, key: string, actor: AuditParty): Promise<void> {
    await this.transact(actor, async (manager) => {
      await existingRow(manager, resource, key);
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

  /** @throws OAuthError of `work`; `conflict` if another entry already has the key */
  private async transact(actor: AuditParty, work: (manager: EntityManager) => Promise<EntryChange>): Promise<void> {
    try {
      await this.transactions.run(actor, async (manager) => [await work(manager)], OPERATOR_TIMEOUT_MS);
    } catch (error) {
      throw isDuplicate(error) ? OAuthError.conflict('the entry already exists') : error;
    }
  }
}

/** @throws OAuthError `invalid_request` */
function parseEntry({ entry }: RegistryResource, value: unknown): Entry {
  const [prototypeKey] = prototypeKeyViolations(value);
  if (prototypeKey !== undefined) throw OAuthError.invalidRequest(prototypeKey, 'an unknown field');
  const [parsed, [violation]] = validated(entry, value);
  if (violation === undefined) return { ...parsed };
  // the caller chooses the name of an unknown field, and texts of callers are not logged
  const reason = violation.endsWith(UNKNOWN_FIELD) ? 'an unknown field' : undefined;
  throw OAuthError.invalidRequest(violation, reason);
}

/** MySQL ignores spaces at the end of a key, so the row that was found may have another key. */
function existing<Row extends ObjectLiteral>({ key: { column } }: RegistryResource, row: Row | undefined, key: string) {
  if (row?.[column] !== key) throw OAuthError.notFound();
  return row;
}

/** @throws OAuthError `not_found` */
async function existingRow<Row extends ObjectLiteral = ObjectLiteral>(
  manager: EntityManager,
  resource: RegistryResource,
  key: string,
): Promise<Row> {
  const [row] = await manager.findBy<Row>(resource.entity, { [resource.key.column]: key } as object);
  return existing(resource, row, key);
}

/** @throws OAuthError `invalid_request` for the removal of a required secret of any resource */
function assertSecretsStay(patch: Entry): void {
  const required = REGISTRY_RESOURCES.flatMap(({ secret }) => (secret?.isRequired ? [secret.field] : [])).sort();
  const removed = required.find((field) => patch[field] === null);
  if (removed !== undefined) throw OAuthError.invalidRequest(`${removed}: cannot be removed`);
}
