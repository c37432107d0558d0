import { Injectable } from '@nestjs/common';
import { type EntityManager, In, IsNull, MoreThan, Not } from 'typeorm';
import type { InactiveReason } from '../../access-token/inactive-reason.js';
import type { Actor, RevocableClaims } from '../../access-token/session-claims.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Clock, DAY_MS } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { selectIn } from '../../platform/database/in-transaction.js';
import type { SqlValue } from '../../platform/database/sql-dialect.js';
import { type EntityRow, selectStatement, writeStatement } from '../../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../../platform/database/value-list.js';
import { uuidv7 } from '../../platform/uuid.js';
import { Agent } from '../../registry/agent.entity.js';
import { Agents } from '../../registry/agents.js';
import { ClientApplication } from '../../registry/client-application.entity.js';
import { RecordedEndings } from '../recorded-endings.js';
import { AgentSession, type AgentSessionKind } from './agent-session.entity.js';

/** How long a session stays after its end: an access token of an agent may live on, and then a token obtained with it. */
const RETENTION_MS = 2 * DAY_MS;
/** The same for a session without tokens. Covers requests under way and clocks that differ. */
const MARGIN_MS = 120_000;
/** When the session of a client expires: it has one, which ends with the client or the agent. */
const NEVER = new Date('9999-12-31T00:00:00Z');

/** The kinds without access tokens: verifiers need not learn of their end, and nothing refers to them. */
const WITHOUT_TOKENS: AgentSessionKind[] = ['page', 'code'];

/**
 * The most sessions of an agent that have not expired. A thief of the page's cookie could otherwise begin so many that a
 * change of the agent takes too long to end them.
 */
const MAX_SESSIONS_COUNT = 1_000;
/** When a client may try again beyond this bound. */
const RETRY_AFTER_SECONDS = 60;

const COLUMNS = [
  'id',
  'kind',
  'agent_id',
  'organization_id',
  'client_id',
  'scope',
  'epoch',
  'redirect_uri',
  'code_challenge',
  'redeemed_network',
  'current_hash',
  'previous_hash',
  'successor_nonce',
  'expires_at',
] as const;

/** A session of an agent with a code or a refresh token. */
export interface StoredAgentSession extends EntityRow<AgentSession, (typeof COLUMNS)[number]> {
  /** Milliseconds since the redemption, by the clock of the database; `null` if the code is not redeemed. */
  redeemed_for: number | null;
}

const findBy = (column: 'code_hash' | 'refresh_id_hash') =>
  selectStatement<[hash: string], StoredAgentSession>({
    columns: [...COLUMNS, ({ millisecondsSince }) => `${millisecondsSince('redeemed_at')} AS redeemed_for`],
    from: `agent_session WHERE ${column} = ?`,
    batch: true,
  });
const FIND_BY_CODE = findBy('code_hash');
const FIND_BY_REFRESH_TOKEN = findBy('refresh_id_hash');

type AgentAtPage = EntityRow<AgentSession, 'agent_id'> & EntityRow<Agent, 'generation'>;

/** The agent may change after this SELECT. Then its generation is higher, and no session begins. */
const FIND_AT_PAGE = selectStatement<[id: string, now: Date], AgentAtPage>({
  columns: ['agent_session.agent_id', 'agent.generation'],
  from: `agent_session JOIN agent ON agent.id = agent_session.agent_id
    WHERE agent_session.id = ? AND agent_session.kind = 'page' AND agent_session.expires_at > ?`,
  batch: true,
});

type ClientSession = EntityRow<AgentSession, 'id' | 'epoch'>;

/** No row if the agent has changed since it was read: a session that began after the change has fewer scopes. */
const FIND_OF_CLIENT = selectStatement<
  [agentId: string, generation: number, clientId: string, now: Date],
  ClientSession
>({
  columns: ['agent_session.id', 'agent_session.epoch'],
  from: `agent_session JOIN agent ON agent.id = agent_session.agent_id
    WHERE agent.id = ? AND agent.generation = ? AND agent_session.kind = 'client' AND agent_session.client_id = ?
      AND agent_session.expires_at > ?`,
  batch: true,
});

const FIND_EPOCH = selectStatement<[id: string], EntityRow<AgentSession, 'epoch'>>({
  columns: ['epoch'],
  from: 'agent_session WHERE id = ?',
  batch: true,
});

type AgentSessionRow = EntityRow<AgentSession, 'id' | 'kind'>;

/** The values of a new session. The rest is `null` or 0. */
export type NewAgentSession = Pick<
  AgentSession,
  'id' | 'kind' | 'agentId' | 'organizationId' | 'clientId' | 'expiresAt'
> &
  Partial<AgentSession>;

/** An agent was deleted, or its sessions have ended, since it was read. */
export class AgentChangedError extends Error {
  constructor() {
    super('the agent has changed meanwhile');
  }
}

/** A caller with an agent's token, whose claims name the session. */
export interface AgentCaller {
  organizationId: string;
  claims: Readonly<RevocableClaims & { exp: number }>;
}

/** Begins and ends the sessions of agents (protocol §6). */
@Injectable()
export class AgentSessions {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly agents: Agents,
    private readonly endings: RecordedEndings,
  ) {}

  /**
   * @param generation of the agent when it was read
   * @throws AgentChangedError
   * @throws OAuthError 429 if the agent has too many sessions
   */
  async begin(session: NewAgentSession, generation: number): Promise<void> {
    await this.database.transaction(async (manager) => {
      if (!(await this.agents.lockIn(manager, session.agentId, generation))) throw new AgentChangedError();
      await this.insertIn(manager, session);
    });
  }

  /**
   * The session of the tokens that a client gets with its own credentials. The first request begins it: the lock on the
   * agent admits one of several first requests at a time.
   *
   * @throws AgentChangedError also if the entry of the client names another agent by now
   * @throws OAuthError 429 if the agent has too many sessions
   */
  async ofClient(clientId: string, { id: agentId, organizationId, generation }: Agent): Promise<ClientSession> {
    const now = this.clock.now();
    const key = [agentId, generation, clientId, new Date(now)] as const;
    const [live] = await this.database.select(FIND_OF_CLIENT, [...key]);
    if (live) return live;
    const id = uuidv7(now);
    return this.database.transaction(async (manager) => {
      if (!(await this.agents.lockIn(manager, agentId, generation))) throw new AgentChangedError();
      const [begun] = await selectIn(manager, FIND_OF_CLIENT, [...key]);
      if (begun) return begun;
      if (!(await manager.existsBy(ClientApplication, { clientId, agentId }))) throw new AgentChangedError();
      await this.insertIn(manager, { id, kind: 'client', agentId, organizationId, clientId, expiresAt: NEVER });
      return { id, epoch: 0 };
    });
  }

  async findByCode(codeHash: string): Promise<StoredAgentSession | undefined> {
    return (await this.database.select(FIND_BY_CODE, [codeHash]))[0];
  }

  async findByRefreshToken(refreshIdHash: string): Promise<StoredAgentSession | undefined> {
    return (await this.database.select(FIND_BY_REFRESH_TOKEN, [refreshIdHash]))[0];
  }

  /** The agent of a session of the page that has not ended. */
  async agentAtPage(id: string): Promise<{ agentId: string; generation: number } | undefined> {
    const [row] = await this.database.select(FIND_AT_PAGE, [id, new Date(this.clock.now())]);
    return row && { agentId: row.agent_id, generation: row.generation };
  }

  /** The claim `act` of what an agent obtains. Stores a trusted issuer's token when it is used for a customer first. */
  async actorFor(caller: AgentCaller): Promise<Actor> {
    const { sub, sid = '', ep = 0, client_id, aud, iss } = caller.claims;
    if (aud !== undefined) return { sub, sid, ep, client_id };
    const [stored] = await this.database.select(FIND_EPOCH, [sid]);
    if (!stored) await this.insertOfIssuer(this.database.manager, caller);
    return { sub, sid, ep, client_id, ...(iss !== undefined && { iss }) };
  }

  /**
   * Ends the access tokens of a session, and what was obtained with them, unless they have ended already. A refresh token
   * stays valid.
   */
  async endTokens(caller: AgentCaller): Promise<void> {
    const { sid = '', ep = 0, aud } = caller.claims;
    await this.database.transaction(async (manager) => {
      if (aud === undefined) await this.insertOfIssuer(manager, caller);
      const { affected } = await manager.increment(AgentSession, { id: sid, epoch: ep }, 'epoch', 1);
      if (affected !== 1) return;
      const ended = [{ id: sid, reason: 'revoked' as const }];
      await this.endings.recordSessions(manager, ended, { epoch: ep + 1, audience: null });
    });
  }

  /** Ends a session of the page. The id comes from a cookie, and may be that of a session of another kind. */
  async endAtPage(id: string): Promise<void> {
    await this.database.manager.delete(AgentSession, { id, kind: 'page' });
  }

  /** Ends a session with its access tokens, and all that was obtained with them. */
  async end(id: string, reason: InactiveReason): Promise<void> {
    await this.database.transaction(async (manager) => {
      const row = await manager.findOneBy(AgentSession, { id });
      if (row) await this.deleteIn(manager, [row], reason);
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

  /** The epochs of some sessions that are not gone. */
  async epochsOf(manager: EntityManager, sessionIds: string[]): Promise<Map<string, number>> {
    const epochs = new Map<string, number>();
    for (const portion of portionsOf([...new Set(sessionIds)])) {
      const rows = await manager.find(AgentSession, { select: { id: true, epoch: true }, where: { id: In(portion) } });
      for (const { id, epoch } of rows) epochs.set(id, epoch);
    }
    return epochs;
  }

  /**
   * Deletes sessions that have expired, if nothing that was obtained with them is left. It reads the table by its primary
   * key, in steps.
   *
   * @returns the number of sessions that each step deleted
   */
  async *deleteInSteps(size: number, now: Date): AsyncGenerator<number, void> {
    const page = { select: { id: true, kind: true, expiresAt: true }, order: { id: 'ASC' }, take: size } as const;
    let after: string | undefined = '';
    while (after !== undefined) {
      const where = { id: MoreThan(after) };
      const rows: AgentSession[] = await this.database.manager.find(AgentSession, { ...page, where });
      const over = rows.filter(({ kind, expiresAt }) => expiresAt.getTime() + retentionMsOf(kind) < now.getTime());
      yield 0;
      for (const portion of portionsOf(over)) yield await this.deleteUnused(portion);
      after = rows.length < size ? undefined : rows.at(-1)?.id;
    }
  }

  private async insertIn(manager: EntityManager, session: NewAgentSession): Promise<void> {
    const now = new Date(this.clock.now());
    const ofAgent = { agentId: session.agentId, issuer: IsNull(), expiresAt: MoreThan(now) };
    if ((await manager.countBy(AgentSession, ofAgent)) >= MAX_SESSIONS_COUNT)
      throw OAuthError.rateLimited(RETRY_AFTER_SECONDS, 'agent_sessions');
    await manager.insert(AgentSession, { epoch: 0, createdAt: now, ...session });
  }

  private async deleteUnused(rows: { id: string }[]): Promise<number> {
    const ids = valueList(rows.map(({ id }) => id));
    const deleteUnused = writeStatement<string[]>(
      `DELETE FROM agent_session WHERE id IN (${placeholdersFor(ids)})
        AND NOT EXISTS (SELECT 1 FROM session WHERE session.agent_session_id = agent_session.id)`,
    );
    return this.database.execute(deleteUnused, ids);
  }

  private async deleteIn(
    manager: EntityManager,
    rows: AgentSessionRow[],
    reason: InactiveReason | undefined,
  ): Promise<void> {
    for (const portion of portionsOf(rows))
      await manager.delete(AgentSession, { id: In(valueList(portion.map(({ id }) => id))) });
    if (reason === undefined) return;
    const ended = rows.filter(({ kind }) => !WITHOUT_TOKENS.includes(kind));
    await this.endings.recordSessions(
      manager,
      ended.map(({ id }) => ({ id, reason })),
      { audience: null },
    );
  }

  /** Inserts the session of a trusted issuer's token, unless it exists. */
  private async insertOfIssuer(manager: EntityManager, { organizationId, claims }: AgentCaller): Promise<void> {
    const { sub: agentId, sid: id = '', client_id: clientId, iss: issuer = '', exp } = claims;
    const row = { id, kind: 'issuer', agentId, organizationId, clientId, issuer, epoch: 0 } as const;
    const times = { createdAt: new Date(this.clock.now()), expiresAt: new Date(exp * 1000) };
    await manager
      .createQueryBuilder()
      .insert()
      .into(AgentSession)
      .values({ ...row, ...times })
      .orIgnore()
      .execute();
  }
}

function retentionMsOf(kind: AgentSessionKind): number {
  return WITHOUT_TOKENS.includes(kind) ? MARGIN_MS : RETENTION_MS;
}

/** Locks the sessions of agents of this service, so that no code among them is redeemed before the transaction ends. */
function lockSessions(manager: EntityManager, where: string, values: string[]): Promise<AgentSessionRow[]> {
  const lock = selectStatement<SqlValue[], AgentSessionRow>(
    ({ forUpdate }) => `SELECT id, kind FROM agent_session WHERE ${where} AND issuer IS NULL${forUpdate}`,
  );
  return selectIn(manager, lock, values);
}
