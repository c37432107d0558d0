import { isDeepStrictEqual } from 'node:util';
import { about } from '../cases.js';
import type { TestResponse } from '../http-client.js';
import { grantsOf, SITE } from '../kit-registry.js';
import { endBearers, STORE_PROOF_ID } from '../rules/endings.js';
import { undeclared } from '../test-context.js';
import { TOKEN } from '../test-environment.js';
import type { Parameters } from '../token-request.js';
import type { RouteKit, RouteRequest } from './route-kit.js';
import type { RouteRule, RouteTestContext } from './route-test-context.js';

/** What a caller creates ends with its bearer token (protocol §10.7). */
export function routeEndedCallerRules({ callers, redeem, ...kit }: RouteKit): RouteRule[] {
  if (callers.length === 0 || redeem === false) return [];
  if (redeem) return [ENDS_WITH_CALLER];
  return grantsOf(kit).length > 0 ? [DECLARES_REDEEM] : [];
}

const DECLARES_REDEEM = undeclared(
  'has a test that declares `redeem`, because the route takes a bearer token and the extension has a grant',
  'redeem: return the parameters of the token request, or declare `redeem: false`',
);

const OUTLIVES = 'if the proof of an agent must outlive its token, declare `redeem: false`';

const ENDS_WITH_CALLER: RouteRule = {
  title: 'creates nothing that gives a token after the bearer token of its caller has ended',
  async check(context) {
    const earlier = await createProof(context);
    const first = await redeem(context, earlier.parameters);
    if (first.status !== 200) throw new Error(`redeem: refused: ${first.status} ${first.text}`);
    const later = await createProof(context);
    if (isDeepStrictEqual(earlier.parameters, later.parameters))
      throw new Error(
        'redeem: returns the same parameters for two requests; take them from the request or its response',
      );
    await endBearers(context.environment.service, [later.bearer]);
    const { status, text, body } = await redeem(context, later.parameters);
    if (status === 400 && body.error === 'invalid_grant') return;
    throw new Error(`not refused with invalid_grant; ${STORE_PROOF_ID}; ${OUTLIVES}\nresponse: ${status} ${text}`);
  },
};

/** Sends a request to the route, and gets the parameters that redeem what the request has created. */
async function createProof(context: RouteTestContext): Promise<{ parameters: object; bearer: string }> {
  const { environment, kit } = context;
  const sent = await context.valid();
  const response = await context.expectSuccess(sent);
  const redeems = kit.redeem as Exclude<RouteKit['redeem'], false | undefined>;
  const parameters = await about('`redeem`', async () => redeems(sent as RouteRequest, response, environment));
  return { parameters, bearer: sent.headers.authorization ?? '' };
}

export async function redeem({ environment, kit }: RouteTestContext, parameters: object): Promise<TestResponse> {
  const body: Parameters = { client_id: SITE, ...parameters };
  const agentScope = grantsOf(kit).find(({ name }) => name === body.grant_type)?.agentScope;
  const headers = agentScope ? { authorization: `Bearer ${await environment.agentToken(agentScope)}` } : {};
  return environment.service.post(TOKEN, body, headers);
}
