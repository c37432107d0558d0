import { CustomerSessions } from 'customer-authorization-service/testing-host';
import { endBearers, STORE_DESCENT } from '../ended-bearers.js';
import type { GrantTestContext } from '../grant-test-context.js';
import { createProof } from '../proof.js';
import type { Rule, RuleSet } from '../rule.js';

/**
 * A proof ends with the token of the caller that created it (protocol §10.7), and with the sessions of its customer
 * (protocol §4.14). An agent proves itself by its bearer token.
 */
export const endingRules: RuleSet = ({ agentScope }, { endsWithCaller = true, endsWithSessions = true }) => [
  ...(endsWithCaller ? [ENDS_WITH_CALLER] : []),
  ...(agentScope === undefined && endsWithSessions ? [ENDS_WITH_SESSIONS] : []),
];

const OPT_OUT = 'if no bearer token in `valid` creates the proof, declare `endsWithCaller: false` in the test';

const ENDS_WITH_CALLER: Rule = {
  title: 'gives no token after the bearer token that created the proof has ended',
  async check(context) {
    const { parameters, bearers } = await createProof(context);
    if ((await endBearers(context.environment.service, bearers)) === 0)
      throw new Error(`\`valid\` sends no bearer token to the service; ${OPT_OUT}`);
    const { status, text, body } = await context.send(parameters);
    if (status === 400 && body.error === 'invalid_grant') return;
    throw new Error(`not refused with invalid_grant; ${STORE_DESCENT}; ${OPT_OUT}\nresponse: ${status} ${text}`);
  },
};

const ENDS_WITH_SESSIONS: Rule = {
  title: 'gives no token for a customer whose sessions ended after the proof was created',
  async check(context) {
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
