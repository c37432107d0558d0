import { Injectable } from '@nestjs/common';
import { type EntityManager, In, IsNull, Not, type ObjectLiteral } from 'typeorm';
import { Consents } from '../../agent-auth/page/consents.js';
import { RecordedEndings } from '../../feed/recorded-endings.js';
import { Audit, party } from '../../platform/audit/audit.js';
import type { AuditParty } from '../../platform/audit/audit-event.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { DatabaseClock } from '../../platform/database/database-clock.js';
import { portionsOf } from '../../platform/database/value-list.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import { Agent } from '../../registry/agent.entity.js';
import { ClientApplication } from '../../registry/client-application.entity.js';
import { AGENTS, COLUMNS_OF_SESSIONS } from '../../registry/entries/agent.entry.js';
import { CLIENTS } from '../../registry/entries/client.entry.js';
import type { EntryKind } from '../../registry/entries/entry-kind.js';
import { ENTRY_KINDS } from '../../registry/entries/entry-kinds.js';
import { Registry } from '../../registry/registry.js';
import { lockRevision, raiseRevision } from '../../registry/registry-revision.js';
import { ResourceServer } from '../../registry/resource-server.entity.js';
import { AgentSessionEndings } from '../../session/agent/agent-session-endings.js';
import type { EntryChange } from './entry-change.js';

/** A client has at most 5 lists of 64 KB, so that a statement is below `max_allowed_packet`, 16 MB in MariaDB. */
const ENTRIES_PER_INSERT = 40;

/** Other processes issue tokens for a suspended entry until they have read the suspension. */
const SUSPENSION_MARGIN_MS = 5_000;

/** The tokens of an entry with an `iat` up to a time have ended. */
interface IssuedUpTo {
  key: string;
  issuedBefore: Date;
}

interface TransactionOptions {
  timeoutMs?: number;
  /** False if all tokens of the agents have ended with their organization: verifiers then get no entries. */
  recordsAgentSessions?: boolean;
}

/** The entries whose sessions and tokens have ended. */
interface EndedEntries {
  /** Deleted, or with a new password, organization or scopes. */
  agentIds: string[];
  /** Deleted. */
  clientIds: string[];
}

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
    private readonly databaseClock: DatabaseClock,
    private readonly agentEndings: AgentSessionEndings,
    private readonly endings: RecordedEndings,
    private readonly consents: Consents,
  ) {}

  async run(
    actor: AuditParty,
    decide: (manager: EntityManager) => Promise<EntryChange[]>,
    { timeoutMs, recordsAgentSessions = true }: TransactionOptions = {},
  ): Promise<void> {
    const changes = await this.database.transaction(async (manager) => {
      await lockRevision(manager);
      const decided = await decide(manager);
      if (decided.length > 0) await this.write(manager, decided, recordsAgentSessions);
      return decided;
    }, timeoutMs);
    // a change may have waited for others longer than a request may take, and what follows a commit must happen
    requestContext.set({ deadline: undefined });
    for (const { kind, key, change, fields = [] } of changes)
      this.audit.success('registry.changed', actor, party(kind.name, key), { details: { change, fields } });
    await this.registry.renew().catch(() => undefined); // the next periodic renewal reads the change
    // for what other requests have issued or stored meanwhile; no session of an agent begins after the change
    await this.endConsentsAndClients(endedBy(changes));
  }

  private async write(manager: EntityManager, changes: EntryChange[], recordsAgentSessions: boolean): Promise<void> {
    const revision = await raiseRevision(manager);
    // the later one, so that a clock that was set back shortens no time in which a row stays
    const now = Math.max(this.clock.now(), this.databaseClock.now());
    const changesOf = (kind: EntryKind, type: EntryChange['change']) =>
      changes.filter((change) => change.kind === kind && change.change === type);
    // before the rows name another agent
    await this.agentEndings.endOfClients(clientsWithOtherAgents(changesOf(CLIENTS, 'changed')), manager);
    for (const kind of ENTRY_KINDS) {
      await insertRows(manager, kind, changesOf(kind, 'created'), revision);
      const issued = await updateRows(manager, kind, changesOf(kind, 'changed'), { revision, now });
      if (issued.length > 0 && (kind.name === 'organization' || kind.name === 'client'))
        await this.endings.endIssued(kind.name, issued, manager);
    }
    const ended = endedBy(changes);
    // also of a deleted agent: no session of the agent begins from now on
    for (const ids of portionsOf(ended.agentIds)) await manager.increment(Agent, { id: In(ids) }, 'generation', 1);
    await this.agentEndings.endAllOf(ended.agentIds, manager, recordsAgentSessions);
    await this.endConsentsAndClients(ended, manager);
    // an agent that is created again later with the email or the id is another one
    for (const { key: agentId } of changesOf(AGENTS, 'deleted'))
      await manager.update(ClientApplication, { agentId }, { agentId: null, revision });
    for (const kind of ENTRY_KINDS) await deleteRows(manager, kind, changesOf(kind, 'deleted'), { revision, now });
  }

  private async endConsentsAndClients({ agentIds, clientIds }: EndedEntries, manager?: EntityManager): Promise<void> {
    await this.consents.end('agentId', agentIds, manager);
    await this.endings.endClients(clientIds, manager);
    await this.consents.end('clientId', clientIds, manager);
  }
}

function endedBy(changes: EntryChange[]): EndedEntries {
  const isEnded = ({ change, columns = {} }: EntryChange) =>
    change === 'deleted' || (change === 'changed' && COLUMNS_OF_SESSIONS.some((column) => column in columns));
  return {
    agentIds: changes.filter((change) => change.kind === AGENTS && isEnded(change)).map(({ key }) => key),
    clientIds: changes.filter(({ kind, change }) => kind === CLIENTS && change === 'deleted').map(({ key }) => key),
  };
}

function clientsWithOtherAgents(changes: EntryChange[]): string[] {
  return changes.flatMap(({ key, columns = {} }) => ('agentId' in columns ? [key] : []));
}

interface Written {
  revision: number;
  now: number;
}

async function insertRows(
  manager: EntityManager,
  { entity, key: { column } }: EntryKind,
  created: EntryChange[],
  revision: number,
): Promise<void> {
  // the id of a deleted client or organization cannot be used again yet (registry-editor.ts)
  if (entity === ResourceServer)
    for (const keys of portionsOf(created.map(({ key }) => key)))
      await manager.delete(entity, { [column]: In(keys), deletedAt: Not(IsNull()) });
  const rows = created.map(({ columns }) => ({ ...columns, revision }));
  for (const values of portionsOf(rows, ENTRIES_PER_INSERT))
    await manager.createQueryBuilder().insert().into(entity).values(values).updateEntity(false).execute();
}

/** @returns the entries that were suspended, or whose suspension was taken back */
async function updateRows(
  manager: EntityManager,
  kind: EntryKind,
  changed: EntryChange[],
  written: Written,
): Promise<IssuedUpTo[]> {
  const issued: IssuedUpTo[] = [];
  for (const portion of portionsOf(changed, ENTRIES_PER_INSERT))
    issued.push(...(await updatePortion(manager, kind, portion, written)));
  return issued;
}

/** Writes the columns that change in any of the rows. The others keep what another transaction may write meanwhile. */
async function updatePortion(
  manager: EntityManager,
  { entity, key: { column } }: EntryKind,
  changes: EntryChange[],
  { revision, now }: Written,
): Promise<IssuedUpTo[]> {
  const changed = new Map(changes.map(({ key, columns }) => [key, { ...columns, revision }]));
  const rows = await manager.findBy(entity, { [column]: In([...changed.keys()]) });
  const issued: IssuedUpTo[] = [];
  for (const row of rows) {
    const columns: ObjectLiteral = changed.get(row[column]) ?? {};
    if (columns.suspended !== undefined) {
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

/** The row of an entry that a process has in memory stays, so that each process learns of the deletion. */
async function deleteRows(
  manager: EntityManager,
  { entity, key: { column } }: EntryKind,
  deleted: EntryChange[],
  { revision, now }: Written,
): Promise<void> {
  for (const keys of portionsOf(deleted.map(({ key }) => key))) {
    if (entity === Agent) await manager.delete(entity, { [column]: In(keys) });
    else await manager.update(entity, { [column]: In(keys) }, { revision, deletedAt: new Date(now) });
  }
}
