import { describe, expect, it, onTestFinished } from 'vitest';
import { createTestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { useDatabase } from '../../support/databases.js';
import { identitiesOf } from '../../support/identities.js';
import { forgetPurgeOfDay, issueAgentToken, purge } from '../../support/operator-commands.js';
import { StatementGate } from '../../support/statement-gate.js';
import { ACME, changed, testRegistry } from '../../support/test-registry.js';
import { newCustomer, transferToken } from '../../support/transfers.js';
import { type UsedService, useService } from '../../support/use-service.js';

const IDLE_DAYS = 30;
const AHEAD_DAYS = 20;
/** The SELECTs of the agent's token and of the customer. */
const STATEMENTS_BEFORE_NOTE_COUNT = 2;

const database = useDatabase(createTestDatabase);

/** Two services on one database. Each has its own clock. */
const options = () => {
  const registry = testRegistry();
  registry.organizations = changed(registry.organizations, [ACME], { idle_days: IDLE_DAYS });
  return { database, registry };
};
const ahead = useService(options);
const behind = useService(options);

/** A token of the customer for an agent, by one of the services. */
async function useAt(service: UsedService, entity_id: string, requestId = 'agent-1'): Promise<void> {
  const headers = { ...bearer(await issueAgentToken(service)), 'x-request-id': requestId };
  expect((await service.post(TOKEN, agentTokenBody({ entity_id }), headers)).status).toBe(200);
}

async function isRetained(entityId: string): Promise<boolean> {
  await forgetPurgeOfDay(ahead);
  await purge(ahead);
  return identitiesOf(ahead).existsBy({ entityId });
}

async function expectIdleLater(entityId: string): Promise<void> {
  ahead.passDays(IDLE_DAYS);
  expect(await isRetained(entityId)).toBe(true);
  ahead.passDays(2);
  expect(await isRetained(entityId)).toBe(false);
}

describe('protocol §5.9: a process whose clock is behind does not shorten the life of a customer', () => {
  type Customer = { entity_id: string; access_token: string };

  it.each<[string, (customer: Customer) => Promise<unknown>]>([
    ['a transfer by the customer', ({ access_token }) => transferToken(behind, access_token)],
    [
      'a transfer by an agent',
      async ({ entity_id }) => {
        const body = { bearer_type: 'agent', customer_id: entity_id };
        return transferToken(behind, await issueAgentToken(behind), body);
      },
    ],
    [
      'the end of all sessions by the operator',
      async ({ entity_id }) => {
        const response = await behind.admin('POST', `/admin/customers/${entity_id}/end_sessions`);
        expect(response.status).toBe(200);
      },
    ],
  ])('by %s', async (_, change) => {
    const customer = await newCustomer(behind);
    const { entity_id } = customer;
    ahead.passDays(AHEAD_DAYS);
    await useAt(ahead, entity_id);
    await change(customer);
    await expectIdleLater(entity_id);
  });

  it('by a token for an agent, whose request was under way during the later use', async () => {
    const { entity_id } = await newCustomer(behind);
    behind.passDays(1);
    ahead.passDays(AHEAD_DAYS);
    const gate = new StatementGate(behind, 'under-way', STATEMENTS_BEFORE_NOTE_COUNT);
    onTestFinished(() => gate.close());
    const underWay = useAt(behind, entity_id, 'under-way');
    await gate.reached;
    await useAt(ahead, entity_id);
    gate.open();
    await underWay;
    await expectIdleLater(entity_id);
  });
});
