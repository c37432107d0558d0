import type { RulesOn } from '../rule.js';

/** What a request for a token is answered with. Most of it the judge looks at in every answer, whatever rule has sent it. */
export const answerRules: RulesOn = () => [
  {
    title: 'gives a token for a valid request, in an answer with exactly the fields that are declared',
    check: async (trial) => void (await trial.granted(await trial.body())),
  },
  {
    title: 'gives a token that any resource server verifies by the JWKS, with the claims of the contract',
    async check(trial) {
      const { body } = await trial.granted(await trial.body());
      const claims = await trial.judge.claimsOf(body.access_token);
      if (claims.sub !== body.entity_id) throw new Error(`sub is ${claims.sub}`);
    },
  },
  {
    title: 'gives a token that this service takes, for a customer whom it knows',
    async check(trial) {
      const { body } = await trial.granted(await trial.body());
      const headers = { authorization: `Bearer ${body.access_token}` };
      const info = await trial.house.service.send('GET', '/v2/customer/info', headers);
      if (info.status !== 200 || info.body.entity_id !== body.entity_id)
        throw new Error(`GET /v2/customer/info: ${info.status} ${info.text}`);
    },
  },
];
