import type { RuleSet } from '../rule.js';

/** The response to a token request. `ResponseChecks` verifies each token by the JWKS, and makes most of the checks. */
export const responseRules: RuleSet = () => [
  {
    title: 'gives a token for a valid request, in a response with exactly the declared fields',
    check: async (context) => void (await context.expectToken(await context.body())),
  },
  {
    title: 'gives a token that this service accepts, for an existing customer',
    async check(context) {
      const { body } = await context.expectToken(await context.body());
      const headers = { authorization: `Bearer ${body.access_token}` };
      const info = await context.environment.service.send('GET', '/v2/customer/info', headers);
      if (info.status !== 200 || info.body.entity_id !== body.entity_id)
        throw new Error(`GET /v2/customer/info: ${info.status} ${info.text}`);
    },
  },
];
