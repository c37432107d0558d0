import { uuidv7 } from '../../platform/uuid.js';
import { FOREIGN, SHARED } from '../kit-registry.js';
import { about, forEach, type Rule, type RulesOn } from '../rule.js';
import { ownParameters } from '../secrets.js';
import type { Trial } from '../trial.js';

/** Which agents a grant lets in, and that nobody reaches a customer of another organization. */
export const callerRules: RulesOn = ({ agentScope, body }) => [
  ...(agentScope === undefined ? [] : agentRules(agentScope)),
  {
    title: 'answers the same for a customer of another organization as for one that does not exist',
    check: (trial) =>
      forEach(ownParameters(body), async (parameter) => {
        const theirs = await trial.house.foreignCustomer();
        const nobody = uuidv7(trial.house.service.clock.now());
        const [one, other] = [await answerTo(trial, parameter, theirs), await answerTo(trial, parameter, nobody)];
        if (one !== other) throw new Error(`${parameter}: for somebody else's customer ${one}\nfor nobody ${other}`);
      }),
  },
];

/** What a caller could tell two answers apart by: of a token nothing, since its customer is checked by itself. */
async function answerTo(trial: Trial, parameter: string, value: string): Promise<string> {
  const { status, body } = await trial.ask(await trial.body({ [parameter]: value }));
  const { request_id: _own, ...told } = body;
  return `${status} ${status === 200 ? '' : JSON.stringify(told)}`;
}

function agentRules(scope: string): Rule[] {
  const refused = { status: 401, error: 'invalid_token' };
  const refuses = async (trial: Trial, bearers: Record<string, string | undefined>) => {
    for (const [what, authorization] of Object.entries(bearers)) {
      const answer = await about(what, async () =>
        trial.refused(refused, await trial.body(), { headers: { authorization } }),
      );
      if (answer.headers.get('www-authenticate') !== 'Bearer error="invalid_token"')
        throw new Error(`${what}: no WWW-Authenticate`);
    }
  };
  return [
    {
      title: 'answers 401 to whoever shows no bearer, or none of an agent',
      check: async (trial) => {
        const { accessToken } = await trial.house.newCustomer();
        const agent = await trial.house.agentToken(scope);
        await refuses(trial, {
          'no bearer': undefined,
          "a customer's token": `Bearer ${accessToken}`,
          'a damaged token': `Bearer ${agent.slice(0, -9)}AAAAAAAAA`,
          'a token without its region': `Bearer ${agent.split(':')[1]}`,
          'what is no token': 'Bearer x',
          'Basic credentials': `Basic ${Buffer.from(agent).toString('base64')}`,
        });
      },
    },
    {
      title: 'answers 401 to the bearer of an agent whose time is over',
      check: async (trial) => {
        const agent = await trial.house.agentToken(scope);
        const { clock } = trial.house.service;
        clock.move(30 * 86_400);
        try {
          await refuses(trial, { 'an expired token': `Bearer ${agent}` });
        } finally {
          clock.move(-30 * 86_400);
        }
      },
    },
    {
      title: 'answers 403 to an agent without its scope',
      check: (trial) =>
        forEach(
          ['customers:other', `${scope}s`, scope.toUpperCase()].filter((each) => each !== scope),
          async (other) => {
            const headers = { authorization: `Bearer ${await trial.house.agentToken(other)}` };
            const answer = await trial.refused({ status: 403, error: 'insufficient_scope' }, await trial.body(), {
              headers,
            });
            const expected = `Bearer error="insufficient_scope", scope="${scope}"`;
            if (answer.headers.get('www-authenticate') !== expected) throw new Error('another WWW-Authenticate');
          },
        ),
    },
    {
      title: 'gives nothing to an agent of another organization',
      check: (trial) =>
        forEach([FOREIGN, SHARED], async (organization) => {
          const headers = { authorization: `Bearer ${await trial.house.agentToken(scope, organization)}` };
          await trial.refused({}, await trial.body(), { headers });
        }),
    },
  ];
}
