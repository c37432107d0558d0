import { uuidv7 } from 'customer-authorization-service/grant';
import { about, forEach } from '../cases.js';
import type { GrantTestContext, Rule, RuleSet } from '../grant-test-context.js';
import { FOREIGN_ORGANIZATION, FOREIGN_SITE } from '../kit-registry.js';
import { bearerRules } from './bearers.js';

const LOOK_UP = 'look up the proof and its customer together with `agent.organizationId`';

/** Agents need the declared scope, and no caller gets a customer of another organization. */
export const callerRules: RuleSet = ({ agentScope }) => [
  ...(agentScope === undefined ? [] : agentRules(agentScope)),
  {
    title: 'responds to a customer of another organization as to a customer that does not exist',
    check: (context) =>
      forEach(context.ownParameters, async (parameter) => {
        const foreignCustomer = await context.environment.foreignCustomer();
        const unknownCustomer = uuidv7(context.environment.service.clock.now());
        const [one, other] = [
          await comparableResponse(context, parameter, foreignCustomer),
          await comparableResponse(context, parameter, unknownCustomer),
        ];
        if (one !== other)
          throw new Error(`${parameter}: for another organization's customer ${one}\nfor no customer ${other}`);
      }),
  },
];

/**
 * The parts of a response by which a caller could distinguish it from another. Only the status of a token response
 * counts.
 */
async function comparableResponse(context: GrantTestContext, parameter: string, value: string): Promise<string> {
  const { status, body } = await context.send(await context.body({ [parameter]: value }));
  const { request_id: _requestId, ...comparable } = body;
  return `${status} ${status === 200 ? '' : JSON.stringify(comparable)}`;
}

function agentRules(scope: string): Rule[] {
  return [
    ...bearerRules(['agent'], scope),
    {
      title: 'gives nothing to an agent of another organization',
      async check(context) {
        const headers = {
          authorization: `Bearer ${await context.environment.agentToken(scope, FOREIGN_ORGANIZATION)}`,
        };
        await context.expectError({}, await context.body(), { headers });
      },
    },
    {
      title: 'gives an agent with a client of its own organization no customer of another organization',
      check: async (context) => {
        const parameters = await context.body();
        const organizationId = FOREIGN_ORGANIZATION;
        const bearer = await context.environment.other.agentToken(scope);
        const named = 'organization_id' in parameters && { organization_id: organizationId };
        const options = { organizationId, headers: { authorization: `Bearer ${bearer}` } };
        await about(LOOK_UP, () => context.send({ ...parameters, client_id: FOREIGN_SITE, ...named }, options));
        await about(`its own agent, after one of another organization tried; ${LOOK_UP}`, () =>
          context.expectToken(parameters),
        );
      },
    },
  ];
}
