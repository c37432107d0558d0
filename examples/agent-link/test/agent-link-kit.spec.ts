import { describeGrant, describeRoute, type TestEnvironment } from '@customer-authorization/conformance-kit';
import { AgentLinkGrant } from '../src/agent-link.grant.js';
import extension from '../src/index.js';

const ROUTE = '/v2/customer/agent_link';
const SCOPE = 'agent_link:create';

const startOf = async ({ clientId, newCustomer }: TestEnvironment) => ({
  client_id: clientId,
  entity_id: (await newCustomer()).entityId,
});

// the rules for all grants
describeGrant(AgentLinkGrant, {
  ...extension,
  valid: async (environment) => {
    const headers = { Authorization: `Bearer ${await environment.agentToken(SCOPE)}` };
    const { body } = await environment.service.post(ROUTE, await startOf(environment), headers);
    return { code: new URL(body.url).hash.replace('#code=', '') };
  },
});

// the rules for all routes
describeRoute(`POST ${ROUTE}`, {
  ...extension,
  callers: ['agent'],
  agentScope: SCOPE,
  actsOn: { customer: 'entity_id' },
  valid: async (environment) => ({ body: await startOf(environment) }),
});
