import { CustomerSessions } from 'customer-authorization-service/testing-host';
import type { GrantTestContext } from '../grant-test-context.js';
import { createProof } from '../proof.js';
import type { RuleSet } from '../rule.js';

/** A proof of a customer ends with its sessions (protocol §4.14). An agent proves itself by its bearer token. */
export const endedSessionsRules: RuleSet = ({ agentScope }, { endsWithSessions = true }) =>
  agentScope === undefined && endsWithSessions ? [ENDS_WITH_SESSIONS] : [];

const ENDS_WITH_SESSIONS = {
  title: 'gives no token for a customer whose sessions ended after the proof was created',
  async check(context: GrantTestContext) {
    const earlier = (await context.expectToken(await context.body())).body.entity_id;
    const { parameters, customers } = await createProof(context);
    const existing = [...new Set([...customers, earlier])];
    await endSessions(context, existing);
    const { body } = await context.send(parameters);
    if (!existing.includes(body.entity_id)) return;
    const solution = 'compare the stored `generation` with that of `Identities.find`';
    const optOut = 'if the proof names something else, such as a phone, declare `endsWithSessions: false` in the test';
    throw new Error(`a token after the sessions of the customer ended; ${solution}; ${optOut}`);
  },
};

/** Ends the sessions as the operator does. */
async function endSessions({ environment }: GrantTestContext, customers: string[]): Promise<void> {
  const { service, organizationId } = environment;
  const sessions = service.application.get(CustomerSessions, { strict: false });
  const actor = { kind: 'operator', id: 'kit' } as const;
  for (const entityId of customers) await sessions.end({ entityId, organizationId, browsers: false, actor });
}
