import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { assertConsistent, assertFileKeyIsFree, assertNotReferenced, editableRow } from './entries/database-checks.js';
import { type Entry, removedColumns, secretColumns, toResponse, withRetainedFields } from './entries/entry.js';
import { mergePatched } from './entries/merge-patch.js';
import { parseEntry } from './entries/parse-entry.js';
import { GrantSettingsClasses } from './grant-settings-classes.js';
import { RegistryTransactions } from './registry-transactions.js';
import type { RegistryResource } from './resources/registry-resource.js';
import { REGISTRY_RESOURCES } from './resources/registry-resources.js';
import { TokenRevokers } from './token-revokers.js';

/** Reads and changes single entries of the registry, with the same rules as the registry file. */
@Injectable()
export class RegistryEditor {
  constructor(
    private readonly database: Database,
    private readonly transactions: RegistryTransactions,
    private readonly tokenRevokers: TokenRevokers,
    private readonly settingsClasses: GrantSettingsClasses,
    private readonly clock: Clock,
  ) {}

  /** @throws OAuthError `not_found` */
  async read(resource: RegistryResource, key: string): Promise<Entry> {
    const { column } = resource.key;
    const [row] = await this.database.read(resource.entity, { where: { [column]: key } });
    // MySQL ignores spaces at the end of a key, so the row may have another key
    if (!row || row[column] !== key) throw OAuthError.notFound();
    return toResponse(resource, row, this.clock.now());
  }

  /**
   * @returns the key of the new entry
   * @throws OAuthError `invalid_request`, `conflict` if another entry has this key or email
   */
  async create(resource: RegistryResource, newEntry: Entry): Promise<string> {
    const { entity } = resource;
    const { field, column, isGenerated } = resource.key;
    const entry = parseEntry(resource, mergePatched({}, newEntry));
    const key = isGenerated ? randomUUID() : String(entry[field]);
    // before the transaction, because hashing a password is slow and other writers would wait
    const secret = await secretColumns(resource, entry);
    await this.transactions.run({ resource, key }, async (manager) => {
      await assertConsistent(manager, resource, entry, this.settingsClasses, false);
      if (await manager.findOneBy(entity, { [column]: key })) throw OAuthError.conflict(`${field}: already exists`);
      await assertFileKeyIsFree(manager, resource, entry, key);
      const row = { [column]: key, ...resource.toRow(entry, secret) };
      await manager.insert(entity, { ...withRetainedFields(resource, row), ownedByFile: false });
    });
    return key;
  }

  /**
   * Applies a merge patch (RFC 7396) to an entry, and checks the resulting entry as a whole.
   *
   * @throws OAuthError `not_found`, `conflict` if the file owns the entry, `invalid_request`
   */
  async change(resource: RegistryResource, key: string, patch: Entry): Promise<void> {
    const { entity, columnsOnTokenEnd } = resource;
    const { field, column, isGenerated } = resource.key;
    assertSecretsStay(patch);
    const secret = await secretColumns(resource, patch);
    // a patch that names a field ends the tokens, even with the stored value; the file compares the values
    const endsTokens = Object.keys(resource.tokensEndWith ?? {}).some((name) => name in patch);
    await this.transactions.run({ resource, key }, async (manager) => {
      const row = editableRow(await manager.findOneBy(entity, { [column]: key }), column, key);
      if (!isGenerated && patch[field] !== undefined && patch[field] !== key) {
        throw OAuthError.invalidRequest(`${field}: cannot be changed`);
      }
      const entry = parseEntry(resource, mergePatched(resource.toEntry(row), patch));
      await assertConsistent(manager, resource, entry, this.settingsClasses, true);
      await assertFileKeyIsFree(manager, resource, entry, key);
      const columns = Object.entries(resource.toRow(entry, secret)).filter(([, value]) => value !== undefined);
      const changed = { ...Object.fromEntries(columns), ...removedColumns(resource, patch) };
      await manager.update(entity, { [column]: key }, { ...changed, ...(endsTokens && columnsOnTokenEnd) });
      if (endsTokens) await this.tokenRevokers.revoke(resource, [key], 'before', manager);
    });
    if (endsTokens) await this.tokenRevokers.revoke(resource, [key], 'after');
  }

  /**
   * Deletes an entry and ends its tokens.
   *
   * @throws OAuthError `not_found`, `conflict` if the file owns the entry or another entry refers to it
   */
  async delete(resource: RegistryResource, key: string): Promise<void> {
    const { entity } = resource;
    const { column } = resource.key;
    await this.transactions.run({ resource, key }, async (manager) => {
      editableRow(await manager.findOneBy(entity, { [column]: key }), column, key);
      await assertNotReferenced(manager, resource, key);
      // the raised generation outlives the row in the revocation feed
      if (resource.columnsOnTokenEnd) await manager.update(entity, { [column]: key }, resource.columnsOnTokenEnd);
      await this.tokenRevokers.revoke(resource, [key], 'before', manager);
      await manager.delete(entity, { [column]: key });
    });
    await this.tokenRevokers.revoke(resource, [key], 'after');
  }
}

/**
 * Rejects the removal of a required secret, by the field names of all resources.
 *
 * @throws OAuthError `invalid_request`
 */
function assertSecretsStay(patch: Entry): void {
  const required = REGISTRY_RESOURCES.flatMap(({ secret }) => (secret?.isRequired ? [secret.field] : [])).sort();
  const removed = required.find((field) => patch[field] === null);
  if (removed !== undefined) throw OAuthError.invalidRequest(`${removed}: cannot be removed`);
}
