import type { RouteKit } from '../kit.js';
import { withHeaders } from '../request.js';
import type { RouteRule } from '../route-subject.js';
import { about } from '../rule.js';

/** The guard and the client check that the author has chosen for a route. */
export function callerRules({ callers, agentScope, anyClient }: RouteKit): RouteRule[] {
  return [
    ...(callers.length > 0 ? [admitsOnly(callers)] : []),
    ...(agentScope === undefined ? [] : [missingScope(agentScope)]),
    ...(anyClient ? [] : [NAMES_GRANT]),
  ];
}

function admitsOnly(callers: RouteKit['callers']): RouteRule {
  return {
    title: 'responds with 401 to a request without a bearer token of its kind of caller',
    async check(subject) {
      const { environment } = subject;
      const bearers: Record<string, string | undefined> = { 'no bearer token': undefined };
      if (!callers.includes('customer'))
        bearers["a customer's token"] = `Bearer ${(await environment.newCustomer()).accessToken}`;
      if (!callers.includes('agent'))
        bearers["an agent's token"] = `Bearer ${await environment.agentToken('customers:own')}`;
      for (const [what, authorization] of Object.entries(bearers))
        await about(what, async () => subject.expectError(withHeaders(await subject.create(), { authorization }), 401));
    },
  };
}

function missingScope(scope: string): RouteRule {
  return {
    title: 'responds with 403 to an agent without its scope',
    async check(subject) {
      const authorization = `Bearer ${await subject.environment.agentToken(`${scope}:other`)}`;
      await subject.expectError(withHeaders(await subject.create(), { authorization }), 403);
    },
  };
}

const NAMES_GRANT: RouteRule = {
  title: 'names its grant, so that only clients with this grant call it',
  async check({ route: { parameters } }) {
    if (parameters.checksClient === undefined || parameters.grant !== undefined) return;
    throw new Error("add { grant: '…' } to @ClientRequest, or declare anyClient: true in the test");
  },
};
