import { describe, it } from 'vitest';
import { exchangeCode, refresh } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { AgentBrowser, codeOf, FOR_CODE, redirected } from '../support/authorization-page.js';
import { stay } from '../support/customer-refresh.js';
import { moveOf, remember } from '../support/remember.js';
import type { TestResponse } from '../support/test-service.js';
import { type Round, raceEnd } from './ending-races.js';
import { agentsTokenFor, agentsTransferOf, MAKING_NAMES, MAKINGS, newRacedCustomer } from './makings.js';
import { available, type RacePod, type RaceWorld } from './world.js';

/** A session of an agent of its own, whose refresh token was used twice, and a customer. */
async function agentOf(world: RaceWorld, pod: RacePod, number: number) {
  const { path, ...credentials } = await world.newAgent();
  const browser = new AgentBrowser(pod, { 'x-forwarded-for': `203.0.${Math.floor(number / 250)}.${number % 250}` });
  await browser.signIn(credentials);
  const first = (await exchangeCode(pod, await codeOf(browser))).body;
  const second = (await refresh(pod, first.refresh_token)).body;
  const third = (await refresh(pod, second.refresh_token)).body;
  const code = await codeOf(browser);
  const { entityId } = await newRacedCustomer(pod);
  return {
    path,
    browser,
    first,
    third,
    code,
    entityId,
    token: third.access_token as string,
    header: bearer(third.access_token),
  };
}

type RacedAgent = Awaited<ReturnType<typeof agentOf>>;
type End = (world: RaceWorld, agent: RacedAgent) => Pick<Round, 'end' | 'acknowledged'>;

const REUSE: End = (_, { first }) => ({ end: (pod) => refresh(pod, first.refresh_token), acknowledged: 400 });
const CHANGE: End = (world, { path }) => ({ end: (pod) => world.changeAgent(pod, path) });

const ENDS: Record<string, End> = {
  'the end of an agent’s token': (_, { header }) => ({ end: (pod) => pod.send('DELETE', '/v2/token', header) }),
  'the reuse of an agent’s refresh token': REUSE,
  'a change of an agent': CHANGE,
};

/** What an agent obtains for a customer with its token. */
const OBTAINED: Record<string, (pod: RacePod, agent: RacedAgent, number: number) => Promise<Partial<Round>>> = {
  'a transfer': async (_, { header, entityId }) => ({ make: (pod) => agentsTransferOf(pod, header, entityId) }),
  'a token for a customer': async (_, { header, entityId }) => ({
    make: (pod) => agentsTokenFor(pod, header, entityId),
  }),
  'what a token for a customer makes': async (prepared, { header, entityId }, number) => {
    const token: string = (await agentsTokenFor(prepared, header, entityId)).body.access_token;
    const making = MAKING_NAMES[number % MAKING_NAMES.length] as keyof typeof MAKINGS;
    return { ...(await MAKINGS[making](prepared, token)), tokens: [token] };
  },
  'a browser by its transfer': async (prepared, agent) => {
    const move = await moveOf(prepared, agent.token, { bearer_type: 'agent', customer_id: agent.entityId });
    return { make: (pod) => remember(pod, move) };
  },
  'a refresh token by its transfer': async (prepared, agent) => {
    const move = await moveOf(prepared, agent.token, { bearer_type: 'agent', customer_id: agent.entityId });
    return { make: (pod) => stay(pod, move) };
  },
};

/** What an agent obtains, or gets for itself, while its session ends (protocol §3.10). */
export function describeAgentRaces(world: RaceWorld): void {
  describe.each(Object.entries(ENDS))('%s', (name, endOf) => {
    it.each(Object.entries(OBTAINED))('ends %s at the same time', (what, prepare) =>
      raceEnd(world, `${name} / ${what}`, async (pod, number) => {
        const agent = await agentOf(world, pod, number);
        const { make, ...more } = await prepare(pod, agent, number);
        const round = { entityId: agent.entityId, tokens: [], ...more, ...endOf(world, agent) };
        return { ...round, make: make as Round['make'] };
      }),
    );
  });

  /** A token for the customer by what the agent got itself, if a part of it still works. */
  async function obtainedBy(pod: RacePod, { body }: TestResponse, entityId: string): Promise<TestResponse> {
    const refreshed = await available(() => refresh(pod, body.refresh_token));
    const { access_token } = refreshed.status === 200 ? refreshed.body : body;
    return agentsTokenFor(pod, bearer(access_token), entityId);
  }

  it.each<[string, string, End, (pod: RacePod, agent: RacedAgent) => Promise<TestResponse>]>([
    [
      'the reuse of a refresh token',
      'the use of its successor',
      REUSE,
      (pod, { third }) => refresh(pod, third.refresh_token),
    ],
    ['a change', 'the use of a refresh token', CHANGE, (pod, { third }) => refresh(pod, third.refresh_token)],
    ['a change', 'the exchange of a code', CHANGE, (pod, { code }) => exchangeCode(pod, code)],
    ['a change', 'a code from the page', CHANGE, (pod, { browser }) => exchangeNewCode(pod, browser)],
  ])('%s ends what %s gives the agent itself at the same time', (name, what, endOf, make) =>
    raceEnd(world, `${name} / ${what}`, async (pod, number) => {
      const agent = await agentOf(world, pod, number);
      let given: TestResponse | undefined;
      return {
        entityId: agent.entityId,
        tokens: [],
        ...endOf(world, agent),
        make: async (maker) => {
          given = await make(maker, agent);
          return { ...given, body: {} }; // an agent's tokens are no customer's: `use` decides
        },
        use: (maker) => obtainedBy(maker, given as TestResponse, agent.entityId),
      };
    }),
  );
}

/** Grants a code at the page of a process, and exchanges it there. An agent that has changed is asked to sign in. */
async function exchangeNewCode(pod: RacePod, { cookies }: AgentBrowser): Promise<TestResponse> {
  const browser = new AgentBrowser(pod);
  for (const [name, value] of cookies) browser.cookies.set(name, value);
  const page = await browser.open(FOR_CODE);
  return exchangeCode(pod, redirected(page).parameters.code ?? 'none');
}
