import type { Actor } from '../../access-token/session-claims.js';

/**
 * The agent's session that a session of a customer ends with, for a SELECT that reads `session`. It has a row unless
 * the agent's session has ended.
 */
export const AGENT_JOIN = `LEFT JOIN agent_session
  ON agent_session.id = session.agent_session_id AND agent_session.epoch = session.agent_epoch`;

export const AGENT_COLUMNS = [
  'session.agent_session_id',
  'session.agent_epoch',
  'agent_session.agent_id',
  'agent_session.client_id AS agent_client_id',
  'agent_session.issuer AS agent_issuer',
] as const;

/** What `AGENT_COLUMNS` select. All are `null` if no agent began the session. */
export interface AgentColumns {
  agent_session_id: string | null;
  agent_epoch: number | null;
  /** `null` also if the agent's session has ended. */
  agent_id: string | null;
  agent_client_id: string | null;
  agent_issuer: string | null;
}

export function agentHasEnded({ agent_session_id, agent_id }: AgentColumns): boolean {
  return agent_session_id !== null && agent_id === null;
}

/** The claim `act` of the tokens of a session whose agent's session has not ended. */
export function actOf(row: AgentColumns): { act?: Actor } {
  const { agent_session_id: sid, agent_epoch: ep, agent_id: sub, agent_client_id, agent_issuer: iss } = row;
  if (sid === null || sub === null) return {};
  return { act: { sub, sid, ep: ep as number, client_id: agent_client_id as string, ...(iss !== null && { iss }) } };
}
