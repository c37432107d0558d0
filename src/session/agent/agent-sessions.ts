import { Injectable } from '@nestjs/common';
import { type EntityManager, In, IsNull, MoreThan } from 'typeorm';
import type { Actor, RevocableClaims } from '../../access-token/session-claims.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { selectIn } from '../../platform/database/in-transaction.js';
import { type EntityRow, selectStatement } from '../../platform/database/statement.js';
import { portionsOf } from '../../platform/database/value-list.js';
import { uuidv7 } from '../../platform/uuid.js';
import type { Agent } from '../../registry/agent.entity.js';
import { Agents } from '../../registry/agents.js';
import { ClientApplication } from '../../registry/client-application.entity.js';
import { AgentSession } from './agent-session.entity.js';

/** When the session of a client expires: it has one, which ends with the client or the agent. */
const NEVER = new Date('9999-12-31T00:00:00Z');

/**
 * The most sessions of an agent that have not expired. A thief of the page's cookie could otherwise begin so many that
 * a change of the agent takes too long to end them.
 */
const MAX_SESSIONS = 1_000;
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
  redeemed_for_ms: number | null;
}

const findBy = (column: 'code_hash' | 'refresh_id_hash') =>
  selectStatement<[hash: string], StoredAgentSession>({
    columns: [...COLUMNS, ({ millisecondsSince }) => `${millisecondsSince('redeemed_at')} AS redeemed_for_ms`],
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

/** Begins and finds the sessions of agents (protocol §3.11). `agent-session-endings.ts` ends them. */
@Injectable()
export class AgentSessions {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly agents: Agents,
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

  /** Ends a session of the page. The id comes from a cookie, and may be that of a session of another kind. */
  async endAtPage(id: string): Promise<void> {
    await this.database.manager.delete(AgentSession, { id, kind: 'page' });
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

  /** Inserts the session of a trusted issuer's token, unless it exists. */
  async insertOfIssuer(manager: EntityManager, { organizationId, claims }: AgentCaller): Promise<void> {
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

  private async insertIn(manager: EntityManager, session: NewAgentSession): Promise<void> {
    const now = new Date(this.clock.now());
    const ofAgent = { agentId: session.agentId, issuer: IsNull(), expiresAt: MoreThan(now) };
    if ((await manager.countBy(AgentSession, ofAgent)) >= MAX_SESSIONS)
      throw OAuthError.rateLimited(RETRY_AFTER_SECONDS, 'agent_sessions');
    await manager.insert(AgentSession, { epoch: 0, createdAt: now, ...session });
  }
}
