import { Inject, Injectable } from '@nestjs/common';
import { type EntityManager, In, IsNull, Not, type ObjectLiteral } from 'typeorm';
import { Audit, party } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { portionsOf } from '../platform/database/value-list.js';
import { Registry } from './registry.js';
import { lockRevision, raiseRevision } from './registry-revision.js';
import type { RegistryResource } from './resources/registry-resource.js';
import { REGISTRY_RESOURCES } from './resources/registry-resources.js';

/** A client has at most 5 lists of 64 KB, so that a statement is below `max_allowed_packet`, 16 MB in MariaDB. */
const ENTRIES_PER_INSERT = 40;

export interface EntryChange {
  resource: RegistryResource;
  /** The key of the admin API. The key of the file is not used, because an agent's email must not be in the audit. */
  key: string;
  change: 'created' | 'changed' | 'deleted';
  columns?: ObjectLiteral;
  fields?: string[];
  endsTokens?: boolean;
}

/** What ends with the tokens of an entry. */
export interface EntryEnding {
  resource: RegistryResource;
  /** `manager`: the transaction, in which the generations are raised already; `undefined` after it. */
  end?(keys: string[], manager?: EntityManager): Promise<void>;
  /** For entries that are suspended, or whose suspension is taken back, in the transaction. */
  endIssued?(issued: IssuedUpTo[], manager: EntityManager): Promise<void>;
}

/** The tokens of an entry with an `iat` up to a time have ended. */
export interface IssuedUpTo {
  key: string;
  issuedBefore: Date;
}

/** Other processes issue tokens for a suspended entry until they have read the suspension. */
const SUSPENSION_MARGIN_MS = 5_000;

/** The token of the list of `EntryEnding` (entry-endings.module.ts). */
export const ENTRY_ENDINGS = Symbol('ENTRY_ENDINGS');

/**
 * Each transaction begins with the lock on the revision, which admits one writer at a time, on all processes. A
 * rejected change does not raise the revision, so that no process reads the registry again.
 */
@Injectable()
export class RegistryTransactions {
  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
    private readonly audit: Audit,
    private readonly clock: Clock,
    @Inject(ENTRY_ENDINGS) private readonly endings: EntryEnding[],
  ) {}

  /** The tokens end before the commit, so that a crash leaves none, and after it, as others were issued meanwhile. */
  async run(
    actor: AuditParty,
    decide: (manager: EntityManager) => Promise<EntryChange[]>,
    timeoutMs?: number,
  ): Promise<void> {
    const changes = await this.database.transaction(async (manager) => {
      await lockRevision(manager);
      const decided = await decide(manager);
      if (decided.length > 0) await this.write(manager, decided);
      return decided;
    }, timeoutMs);
    for (const change of changes) this.recordAudit(actor, change);
    await this.registry.renew().catch(() => undefined); // the next periodic renewal reads the change
    await this.endTokens(changes);
  }

  private async write(manager: EntityManager, changes: EntryChange[]): Promise<void> {
    const revision = await raiseRevision(manager);
    const ofResource = (resource: RegistryResource) => changes.filter((each) => each.resource === resource);
    const now = this.clock.now();
    for (const resource of REGISTRY_RESOURCES) {
      const issued = await writeRows(manager, resource, ofResource(resource), { revision, now });
      for (const ending of this.endings)
        if (ending.resource === resource && issued.length > 0) await ending.endIssued?.(issued, manager);
    }
    await this.endTokens(changes, manager);
    const deletedAt = new Date(now);
    for (const resource of REGISTRY_RESOURCES)
      await deleteRows(manager, resource, ofResource(resource), { revision, deletedAt });
  }

  private async endTokens(changes: EntryChange[], manager?: EntityManager): Promise<void> {
    for (const { resource, end } of this.endings) {
      const ended = changes.filter((each) => each.endsTokens && each.resource === resource).map(({ key }) => key);
      if (ended.length > 0) await end?.(ended, manager);
    }
  }

  private recordAudit(actor: AuditParty, { resource, key, change, fields = [] }: EntryChange): void {
    this.audit.success('registry.changed', actor, party(resource.auditKind, key), { details: { change, fields } });
  }
}

interface Written {
  revision: number;
  now: number;
}

async function writeRows(
  manager: EntityManager,
  resource: RegistryResource,
  changes: EntryChange[],
  written: Written,
): Promise<IssuedUpTo[]> {
  const { revision } = written;
  const issued: IssuedUpTo[] = [];
  const { entity, columnsOnTokenEnd, retainedFields = {} } = resource;
  const { column } = resource.key;
  const created = changes.filter(({ change }) => change === 'created');
  await releaseKeys(manager, resource, created);
  const rows = created.map(({ columns }) =>
    Object.assign({ revision }, ...Object.values(retainedFields), given(columns)),
  );
  for (const values of portionsOf(rows, ENTRIES_PER_INSERT))
    await manager.createQueryBuilder().insert().into(entity).values(values).updateEntity(false).execute();
  const changed = changes.filter(({ change }) => change === 'changed');
  for (const some of portionsOf(changed, ENTRIES_PER_INSERT))
    issued.push(...(await updateRows(manager, resource, some, written)));
  // also of an entry that is deleted: no session of an agent begins from now on
  const ended = columnsOnTokenEnd ? changes.filter(({ endsTokens }) => endsTokens).map(({ key }) => key) : [];
  for (const keys of portionsOf(ended))
    await manager.update(entity, { [column]: In(keys) }, columnsOnTokenEnd as ObjectLiteral);
  return issued;
}

/** Writes the columns that change in any of the rows. The others keep what another transaction may write meanwhile. */
async function updateRows(
  manager: EntityManager,
  { entity, key: { column } }: RegistryResource,
  changes: EntryChange[],
  { revision, now }: Written,
): Promise<IssuedUpTo[]> {
  const changed = new Map(changes.map(({ key, columns }) => [key, { ...given(columns), revision }]));
  const rows = await manager.findBy(entity, { [column]: In([...changed.keys()]) });
  const issued: IssuedUpTo[] = [];
  for (const row of rows) {
    const columns: ObjectLiteral = changed.get(row[column]) ?? {};
    if (columns.suspended !== undefined && columns.suspended !== row.suspended) {
      const before = now + (columns.suspended ? SUSPENSION_MARGIN_MS : 0);
      columns.issuedBefore = new Date(Math.max(before, row.issuedBefore?.getTime() ?? 0));
      issued.push({ key: row[column], issuedBefore: columns.issuedBefore });
    }
    Object.assign(row, columns);
  }
  const names = new Set([...changed.values()].flatMap((columns) => Object.keys(columns)));
  const columnName = (name: string) =>
    manager.dataSource.getMetadata(entity).findColumnWithPropertyName(name)?.databaseName ?? name;
  // this never inserts, because the lock on the revision keeps the rows that were read
  const insert = manager.createQueryBuilder().insert().into(entity).values(rows).updateEntity(false);
  await insert.orUpdate([...names].map(columnName), [columnName(column)]).execute();
  return issued;
}

function given(columns: ObjectLiteral = {}): ObjectLiteral {
  return Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined));
}

/** @throws OAuthError `conflict` for the key of a deleted entry of which something may be left */
async function releaseKeys(
  manager: EntityManager,
  { entity, key: { column, field }, retainsKey }: RegistryResource,
  created: EntryChange[],
): Promise<void> {
  if (!isRetained(manager, entity)) return;
  for (const keys of portionsOf(created.map(({ key }) => key))) {
    const where = { [column]: In(keys), deletedAt: Not(IsNull()) };
    const [deleted] = await manager.find(entity, { where, withDeleted: true, take: 1 });
    if (!deleted) continue;
    if (retainsKey) throw OAuthError.conflict(`${field}: ${deleted[column]} was deleted, and ${retainsKey}`);
    await manager.delete(entity, where);
  }
}

/** The row of an entry that a process has in memory stays, so that each process learns of the deletion. */
async function deleteRows(
  manager: EntityManager,
  { entity, key: { column } }: RegistryResource,
  changes: EntryChange[],
  columns: { revision: number; deletedAt: Date },
): Promise<void> {
  const deleted = changes.filter(({ change }) => change === 'deleted').map(({ key }) => key);
  for (const keys of portionsOf(deleted)) {
    if (isRetained(manager, entity)) await manager.update(entity, { [column]: In(keys) }, columns);
    else await manager.delete(entity, { [column]: In(keys) });
  }
}

function isRetained(manager: EntityManager, entity: RegistryResource['entity']): boolean {
  return manager.dataSource.getMetadata(entity).deleteDateColumn !== undefined;
}
