import { EndSessionsService, type GrantMetadata } from '@customer-authorization/service/testing-host';
import type { GrantRule, GrantSubject } from '../grant-subject.js';
import { TOKEN } from '../test-environment.js';

const WITH_CALLER =
  "declare endsWith: 'caller' in @GrantType, store `proof()` of the caller, and return it as `proof`; or declare endsWith: 'nothing' if the proof outlives its caller";
const WITH_SESSIONS =
  "declare endsWith: 'sessions' in @GrantType, store `generation` of the customer, and return it; or declare endsWith: 'nothing' if the proof outlives the sessions";

/** What ends a proof before its time (protocol §10.7). */
export function endingRules({ agentScope, endsWith }: GrantMetadata): GrantRule[] {
  if (endsWith === 'nothing') return [];
  return [
    ...(endsWith === 'sessions' ? [] : [ENDS_WITH_CALLER]),
    // an agent that calls the grant proves itself by its bearer token
    ...(agentScope === undefined ? [ENDS_WITH_SESSIONS] : []),
  ];
}

const ENDS_WITH_CALLER: GrantRule = {
  title: 'gives no token after the bearer token that created the proof has ended',
  async check(subject) {
    const { sent, bearers, isOfRoute } = await subject.proof();
    if (!isOfRoute || bearers.length === 0) return;
    await endBearers(subject, bearers);
    await subject.expectNoToken(sent, 'a proof of a caller whose bearer token has ended', WITH_CALLER);
  },
};

async function endBearers({ service }: GrantSubject, bearers: string[]): Promise<void> {
  for (const authorization of bearers)
    for (const path of [TOKEN, '/v2/token']) await service.send('DELETE', path, { authorization });
}

const ENDS_WITH_SESSIONS: GrantRule = {
  title: 'gives no token for a customer whose sessions ended after the proof was created',
  async check(subject) {
    const used = await subject.proof();
    const { body } = await subject.expectSuccess(used.sent);
    if (!used.customers.includes(body.entity_id)) return; // the proof names no customer that exists
    const { sent, customers } = await subject.proof();
    const sessions = subject.service.application.get(EndSessionsService, { strict: false });
    const { organizationId } = subject.environment;
    const actor = { kind: 'operator', id: 'kit' } as const;
    for (const entityId of customers) await sessions.end({ entityId, organizationId, browsers: false, actor });
    const response = await subject.send(sent);
    if (customers.includes(response.body.entity_id))
      throw new Error(`a token after the sessions of the customer ended; ${WITH_SESSIONS}`);
  },
};
