import { Injectable } from '@nestjs/common';
import { type EntityManager, In, IsNull, Not } from 'typeorm';
import type { InactiveReason } from '../../access-token/inactive-reason.js';
import { RecordedEndings } from '../../feed/recorded-endings.js';
import { Database } from '../../platform/database/database.js';
import { selectIn } from '../../platform/database/in-transaction.js';
import type { SqlValue } from '../../platform/database/sql-dialect.js';
import { type EntityRow, selectStatement } from '../../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../../platform/database/value-list.js';
import { Agent } from '../../registry/agent.entity.js';
import { ClientApplication } from '../../registry/client-application.entity.js';
import { AgentSession, KINDS_WITHOUT_TOKENS } from './agent-session.entity.js';
import { type AgentCaller, AgentSessions } from './agent-sessions.js';

type AgentSessionRow = EntityRow<AgentSession, 'id' | 'kind'>;

/** Ends the sessions of agents, each ending in one transaction (protocol §3.11). */
@Injectable()
export class AgentSessionEndings {
  constructor(
    private readonly database: Database,
    private readonly sessions: AgentSessions,
    private readonly endings: RecordedEndings,
  ) {}

  /**
   * Ends the access tokens of a session, and what was obtained with them. A refresh token stays valid.
   *
   * @returns false if the tokens had ended before
   */
  async endTokens(caller: AgentCaller): Promise<boolean> {
    const { sid = '', ep = 0, aud } = caller.claims;
    return this.database.transaction(async (manager) => {
      if (aud === undefined) await this.sessions.insertOfIssuer(manager, caller);
      const { affected } = await manager.increment(AgentSession, { id: sid, epoch: ep }, 'epoch', 1);
      if (affected !== 1) return false;
      const ended = [{ id: sid, reason: 'revoked' as const }];
      await this.endings.recordSessions(manager, ended, { epoch: ep + 1, audience: null });
      return true;
    });
  }

  /** Ends a session with its access tokens, and all that was obtained with them. @returns false if it had ended before */
  end(id: string, reason: InactiveReason): Promise<boolean> {
    return this.database.transaction(async (manager) => {
      const row = await manager.findOneBy(AgentSession, { id });
      if (row) await this.deleteIn(manager, [row], reason);
      return row !== null;
    });
  }

  /**
   * Ends all sessions of agents of this service.
   *
   * @param manager the transaction that has changed the rows of the agents
   * @param isRecorded false if all their tokens have ended already
   */
  async endAllOf(agentIds: string[], manager: EntityManager, isRecorded: boolean): Promise<void> {
    for (const portion of portionsOf(agentIds)) {
      const ids = valueList(portion);
      const sessions = await lockSessions(manager, `agent_id IN (${placeholdersFor(ids)})`, ids);
      await this.deleteIn(manager, sessions, isRecorded ? 'agent_changed' : undefined);
    }
  }

  /** Ends the sessions of clients that get other agents, in the transaction that then writes these. */
  async endOfClients(clientIds: string[], manager: EntityManager): Promise<void> {
    for (const portion of portionsOf(clientIds)) {
      const clients = await manager.findBy(ClientApplication, { clientId: In(portion), agentId: Not(IsNull()) });
      if (clients.length === 0) continue;
      const agentIds = valueList(clients.map(({ agentId }) => agentId as string));
      // no session of the clients begins meanwhile
      await manager.increment(Agent, { id: In(agentIds) }, 'version', 1);
      const clientIds = valueList(portion);
      const ofClients = `agent_id IN (${placeholdersFor(agentIds)})
        AND kind = 'client' AND client_id IN (${placeholdersFor(clientIds)})`;
      const sessions = await lockSessions(manager, ofClients, [...agentIds, ...clientIds]);
      await this.deleteIn(manager, sessions, 'revoked');
    }
  }

  private async deleteIn(
    manager: EntityManager,
    rows: AgentSessionRow[],
    reason: InactiveReason | undefined,
  ): Promise<void> {
    for (const portion of portionsOf(rows))
      await manager.delete(AgentSession, { id: In(valueList(portion.map(({ id }) => id))) });
    if (reason === undefined) return;
    const ended = rows.filter(({ kind }) => !KINDS_WITHOUT_TOKENS.includes(kind));
    await this.endings.recordSessions(
      manager,
      ended.map(({ id }) => ({ id, reason })),
      { audience: null },
    );
  }
}

/** Locks the sessions of agents of this service, so that no code among them is redeemed before the transaction ends. */
function lockSessions(manager: EntityManager, where: string, values: string[]): Promise<AgentSessionRow[]> {
  const lock = selectStatement<SqlValue[], AgentSessionRow>(
    ({ forUpdate }) => `SELECT id, kind FROM agent_session WHERE ${where} AND issuer IS NULL${forUpdate}`,
  );
  return selectIn(manager, lock, values);
}
