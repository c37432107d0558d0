import { Injectable } from '@nestjs/common';
import { type EntityManager, In, type ObjectLiteral } from 'typeorm';
import { Audit, party } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { portionsOf } from '../platform/database/value-list.js';
import { Registry } from './registry.js';
import { RegistryChange, RegistryRevision } from './registry-change.entity.js';
import { MAX_CHANGES } from './registry-revision.js';
import type { RegistryResource } from './resources/registry-resource.js';
import { REGISTRY_RESOURCES } from './resources/registry-resources.js';

/** A process that was away for longer reads the whole registry. */
const CHANGE_RETENTION_MS = 86_400_000;
const CHANGES_PER_INSERT = 500;
/** A client has at most 5 lists of 64 KB, so that a statement is below `max_allowed_packet`, 16 MB in MariaDB. */
const ENTRIES_PER_INSERT = 40;

export interface EntryChange {
  resource: RegistryResource;
  /** The key of the admin API. The key of the file is not used, because an agent's email must not be in the audit. */
  key: string;
  /** `released`: the registry file no longer lists the entry. */
  change: 'created' | 'changed' | 'deleted' | 'released';
  columns?: ObjectLiteral;
  fields?: string[];
  endsTokens?: boolean;
}

/** `manager`: the transaction, in which the generations are raised already; `undefined` after it. */
export type TokenRevoker = (keys: string[], manager?: EntityManager) => Promise<void>;

/**
 * Each transaction begins with the lock on the revision, which admits one writer at a time, on all processes. A
 * rejected change does not raise the revision, so that no process reads the registry again.
 */
@Injectable()
export class RegistryTransactions {
  private readonly revokers: { resource: RegistryResource; revoke: TokenRevoker }[] = [];

  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {}

  registerRevoker(resource: RegistryResource, revoke: TokenRevoker): void {
    this.revokers.push({ resource, revoke });
  }

  /** The tokens end before the commit, so that a crash leaves none, and after it, as others were issued meanwhile. */
  async run(
    actor: AuditParty,
    decide: (manager: EntityManager) => Promise<EntryChange[]>,
    timeoutMs?: number,
  ): Promise<void> {
    const changes = await this.database.transaction(async (manager) => {
      await manager.increment(RegistryRevision, { id: 1 }, 'revision', 0); // takes the lock
      const decided = await decide(manager);
      if (decided.length > 0) await this.write(manager, decided);
      return decided;
    }, timeoutMs);
    for (const change of changes) this.recordAudit(actor, change);
    await this.registry.renew().catch(() => undefined); // the next periodic renewal reads the change
    await this.endTokens(changes);
  }

  private async write(manager: EntityManager, changes: EntryChange[]): Promise<void> {
    for (const resource of REGISTRY_RESOURCES) {
      const ofResource = changes.filter((each) => each.resource === resource);
      await writeRows(manager, resource, ofResource);
    }
    await this.endTokens(changes, manager);
    for (const { resource, key, change } of changes) {
      if (change === 'deleted') await manager.delete(resource.entity, { [resource.key.column]: key });
    }
    await this.raiseRevision(manager, changes);
  }

  private async endTokens(changes: EntryChange[], manager?: EntityManager): Promise<void> {
    for (const { resource, revoke } of this.revokers) {
      const ended = changes.filter((each) => each.endsTokens && each.resource === resource).map(({ key }) => key);
      if (ended.length > 0) await revoke(ended, manager);
    }
  }

  /** Without the log, other processes read the whole registry. */
  private async raiseRevision(manager: EntityManager, changes: EntryChange[]): Promise<void> {
    await manager.increment(RegistryRevision, { id: 1 }, 'revision', 1);
    if (changes.length > MAX_CHANGES) return;
    const revision = await currentRevision(manager);
    const expiresAt = new Date(this.clock.now() + CHANGE_RETENTION_MS);
    const rows = changes.map(({ resource, key }) => ({ revision, resource: resource.list, entryKey: key, expiresAt }));
    for (const values of portionsOf(rows, CHANGES_PER_INSERT)) await manager.insert(RegistryChange, values);
  }

  private recordAudit(actor: AuditParty, { resource, key, change, fields = [] }: EntryChange): void {
    if (change === 'released') return;
    this.audit.success('registry.changed', actor, party(resource.auditKind, key), { details: { change, fields } });
  }
}

async function writeRows(manager: EntityManager, resource: RegistryResource, changes: EntryChange[]): Promise<void> {
  const { entity, columnsOnTokenEnd, retainedFields = {} } = resource;
  const { column } = resource.key;
  const created = changes.filter(({ change }) => change === 'created');
  const rows = created.map(({ columns }) => Object.assign({}, ...Object.values(retainedFields), given(columns)));
  for (const values of portionsOf(rows, ENTRIES_PER_INSERT))
    await manager.createQueryBuilder().insert().into(entity).values(values).updateEntity(false).execute();
  const changed = changes.filter(({ change }) => change === 'changed');
  for (const some of portionsOf(changed, ENTRIES_PER_INSERT)) await updateRows(manager, resource, some);
  // also of an entry that is deleted: no session of an agent begins from now on
  const ended = columnsOnTokenEnd ? changes.filter(({ endsTokens }) => endsTokens).map(({ key }) => key) : [];
  for (const keys of portionsOf(ended))
    await manager.update(entity, { [column]: In(keys) }, columnsOnTokenEnd as ObjectLiteral);
  const released = changes.filter(({ change }) => change === 'released').map(({ key }) => key);
  for (const keys of portionsOf(released)) await manager.update(entity, { [column]: In(keys) }, { ownedByFile: false });
}

/** Writes the columns that change in any of the rows. The others keep what another transaction may write meanwhile. */
async function updateRows(
  manager: EntityManager,
  { entity, key: { column } }: RegistryResource,
  changes: EntryChange[],
): Promise<void> {
  const changed = new Map(changes.map(({ key, columns }) => [key, given(columns)]));
  const names = new Set([...changed.values()].flatMap((columns) => Object.keys(columns)));
  if (names.size === 0) return;
  const rows = await manager.findBy(entity, { [column]: In([...changed.keys()]) });
  for (const row of rows) Object.assign(row, changed.get(row[column]));
  const columnName = (name: string) =>
    manager.dataSource.getMetadata(entity).findColumnWithPropertyName(name)?.databaseName ?? name;
  // this never inserts, because the lock on the revision keeps the rows that were read
  const insert = manager.createQueryBuilder().insert().into(entity).values(rows).updateEntity(false);
  await insert.orUpdate([...names].map(columnName), [columnName(column)]).execute();
}

function given(columns: ObjectLiteral = {}): ObjectLiteral {
  return Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined));
}

export async function currentRevision(manager: EntityManager): Promise<number> {
  return (await manager.findOneByOrFail(RegistryRevision, { id: 1 })).revision;
}
